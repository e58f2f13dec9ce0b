"""All metrics of one or several models' captions of the same images."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.data.tokenizer import RULES, tokenize
from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms, chair
from training.evaluation.metrics.cider_d import TextCiderD, cider_btw
from training.evaluation.metrics.coco import coco_metrics
from training.evaluation.metrics.diversity import Diversity
from training.evaluation.metrics.java import PTB, meteor, ptb_tokenize, spice
from training.evaluation.metrics.metric import Captions, Metric, MetricError, References
from training.evaluation.metrics.retrieval import retrieval

PTB_RULE = "ptb"
TOKENISERS = {PTB_RULE: "", "words": "spacy", "unicode": "unicode"}
"""Rules of :data:`training.data.tokenizer.RULES` by the names of ``--tokenizer``; ``ptb`` is the COCO toolkit's."""
OWN_TOKENISER = "spaCy English tokeniser, lower case, without punctuation (references and captions alike)"


@dataclass(frozen=True)
class ChairData:
    """Inputs of CHAIR beside the captions."""

    objects: Mapping[str, Iterable[str]]
    """Image id to the class names of its annotated instances."""
    synonyms: Synonyms
    source: str = "the instances"
    """Data set or files of the instances, for error messages."""

    @classmethod
    def load(cls, objects: Mapping[str, Iterable[str]], synonyms: Path, source: str) -> "ChairData":
        """Read the synonyms of the classes of objects; arguments as the fields, the synonyms by :meth:`Synonyms.load`.

        Raises:
            DataError: the list is missing or malformed, or lacks a class.
        """
        known = Synonyms.load(synonyms)
        if unknown := {name for names in objects.values() for name in names} - known.class_of.keys():
            raise DataError(f"the synonym list lacks the classes {', '.join(sorted(unknown))} of {source}")
        return cls(objects, known, source)


@dataclass(frozen=True)
class ModelScores:
    """Scores of one model."""

    metrics: dict[str, Metric]
    """By name; empty without references."""
    diversity: Diversity


@dataclass(frozen=True)
class Evaluation:
    """Scores of several models on the same images."""

    images: list[str]
    """Image ids, in the order of the metrics' values."""
    tokeniser: str
    """Name of the tokeniser."""
    models: dict[str, ModelScores]
    """By name; the first is the baseline."""
    unavailable: dict[str, str]
    """Metrics (and the PTB tokeniser) that could not run, with the reason and the remedy."""
    domains: dict[str, "Evaluation"] = field(default_factory=dict)
    """Scores on the images of each domain alone, by its name."""


@dataclass(frozen=True)
class _Column:
    """Captions of a model and the human captions to compare them with, space-joined tokens."""

    captions: Captions
    references: References

    def of_images(self, images: Sequence[str]) -> "_Column":
        return _Column(
            {image: self.captions[image] for image in images}, {image: self.references[image] for image in images}
        )

    def scores(self, chair_data: ChairData | None, similar: Mapping[str, Sequence[str]] | None) -> ModelScores:
        """Compute the metrics that depend on the other images; none without references."""
        metrics: list[Metric] = []
        if any(self.references.values()):
            metrics += coco_metrics(self.captions, self.references)
            metrics += retrieval(self.captions, self.references)
            if similar is not None:
                metrics.append(cider_btw(self.captions, self.references, similar))
            if chair_data:
                metrics += chair(self.captions, self.references, chair_data.objects, chair_data.synonyms)
        diversity = Diversity.of(list(self.captions.values()))
        return ModelScores({metric.name: metric for metric in metrics}, diversity)


def score_models(
    models: Mapping[str, Mapping[str, str]],
    references: Mapping[str, Sequence[str]],
    frequency_captions: Iterable[Sequence[str]] | None = None,
    chair_data: ChairData | None = None,
    *,
    own_references: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    similar: Mapping[str, Sequence[str]] | None = None,
    domains: Mapping[str, str] | None = None,
    further: Mapping[str, Callable[[], Sequence[Metric]]] | None = None,
    rule: str = PTB_RULE,
) -> Evaluation:
    """Score several models, on all images and on those of each domain alone.

    Args:
        models: by name of the model, for each image of ``references`` a caption as written.
        references: for each image the human captions as written. Where no image has any, only the diversity of the
            captions is measured.
        frequency_captions: for each image of a corpus its captions as written, for the document frequencies of CIDEr-D;
            None takes ``references``.
        own_references: by name of the model, human captions in place of ``references``.
        similar: for each image the similar ones, of the same domain, for CIDErBtw; None leaves CIDErBtw out.
        domains: domain of images; an image may have none.
        further: by name, metrics of each image alone: called for the metrics of all models in their order, or
            :class:`MetricError`.
        rule: how texts become words: one of :data:`TOKENISERS`.

    Raises:
        ValueError: a model and the references do not name the same images, or the objects of an image are missing.
    """
    images = list(references)
    compared = {name: (own_references or {}).get(name, references) for name in models}
    for name, captions in models.items():
        if not captions.keys() == compared[name].keys() == references.keys():
            raise ValueError(f"{name} and the references must name the same images")
    corpus = None if frequency_captions is None else [list(captions) for captions in frequency_captions]
    human = [group for captions in compared.values() for group in captions.values()]
    said = [list(captions.values()) for captions in models.values()]
    tokens, tokeniser, unavailable = _tokenise(
        (text for group in (*human, *said, *(corpus or ())) for text in group), rule
    )
    columns = {
        name: _Column(
            {image: tokens[captions[image]] for image in images},
            {image: [tokens[text] for text in compared[name][image]] for image in images},
        )
        for name, captions in models.items()
    }
    scores = {name: column.scores(chair_data, similar) for name, column in columns.items()}
    evaluation = Evaluation(images, tokeniser, scores, unavailable)
    if any(human):
        tokenised = None if corpus is None else [[tokens[text] for text in group] for group in corpus]
        for name, column in columns.items():
            cider_d = TextCiderD(column.references, tokenised).metric(column.captions)
            scores[name].metrics[cider_d.name] = cider_d
    for key, measure in {**_java_metrics(evaluation, columns), **(further or {})}.items():
        try:
            for scored, metric in zip(scores.values(), measure(), strict=True):
                scored.metrics[key] = metric
        except MetricError as error:
            if any(human):
                unavailable[key] = str(error)
    of_images = [(domains or {}).get(image) for image in images]
    for domain in sorted(set(filter(None, of_images))):
        chosen = np.array([of_image == domain for of_image in of_images])
        evaluation.domains[domain] = _of_domain(evaluation, columns, chosen, chair_data, similar)
    return evaluation


def _of_domain(
    evaluation: Evaluation,
    columns: Mapping[str, _Column],
    chosen: NDArray[np.bool_],
    chair_data: ChairData | None,
    similar: Mapping[str, Sequence[str]] | None,
) -> Evaluation:
    """Score the images of a domain as if there were no others.

    CIDEr-D and the metrics that are computed for each image alone have the values of the whole evaluation.
    """
    images = [image for image, inside in zip(evaluation.images, chosen, strict=True) if inside]
    models = {name: column.of_images(images).scores(chair_data, similar) for name, column in columns.items()}
    for name, scores in models.items():
        for key, metric in evaluation.models[name].metrics.items():
            scores.metrics.setdefault(key, metric.of_images(chosen))
    return Evaluation(images, evaluation.tokeniser, models, evaluation.unavailable)


def _java_metrics(evaluation: Evaluation, columns: Mapping[str, _Column]) -> dict[str, Callable[[], Sequence[Metric]]]:
    """Return METEOR and SPICE, where there are references and captions of the PTB tokeniser."""
    pairs = [(column.captions, column.references) for column in columns.values()]
    if not any(any(references.values()) for _, references in pairs):
        return {}
    if reason := evaluation.unavailable.get("ptb_tokeniser"):
        evaluation.unavailable.update(meteor=reason, spice=reason)
        return {}
    return {"meteor": partial(meteor, pairs), "spice": partial(spice, pairs)}


def _tokenise(texts: Iterable[str], rule: str) -> tuple[dict[str, str], str, dict[str, str]]:
    """Tokenise texts, each once, with one process of the PTB tokeniser, or with our own tokeniser where that fails.

    Returns:
        The space-joined tokens of every text, the name of the tokeniser, and why the PTB tokeniser is not available.
    """
    written = list(dict.fromkeys(texts))
    if rule != PTB_RULE:
        words = RULES[TOKENISERS[rule]].words
        why = "needs the PTB tokeniser; leave --tokenizer out"
        return {text: " ".join(words(text)) for text in written}, f"{rule} of training", {"ptb_tokeniser": why}
    try:
        return dict(zip(written, ptb_tokenize(written), strict=True)), PTB, {}
    except MetricError as error:
        return {text: " ".join(tokenize(text)) for text in written}, OWN_TOKENISER, {"ptb_tokeniser": str(error)}
