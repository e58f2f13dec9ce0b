"""All metrics for one or several models' captions of the same images."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from training.data.tokenizer import tokenize
from training.evaluation.metrics.chair import Synonyms, chair
from training.evaluation.metrics.cider_d import TextCiderD
from training.evaluation.metrics.coco import coco_metrics
from training.evaluation.metrics.diversity import mean_words, self_bleu, vocabulary_size
from training.evaluation.metrics.java import JavaError
from training.evaluation.metrics.meteor import meteor
from training.evaluation.metrics.metric import Captions, Metric, References
from training.evaluation.metrics.ptb import NAME as PTB
from training.evaluation.metrics.ptb import ptb_tokenize
from training.evaluation.metrics.spice import spice

OWN_TOKENISER = "spaCy English tokeniser, lower case, without punctuation (references and captions alike)"


@dataclass(frozen=True)
class ChairData:
    """What CHAIR needs beside captions."""

    objects: Mapping[str, Iterable[str]]
    """Class names of the annotated instances of each image."""
    synonyms: Synonyms
    source: str = "the instances"
    """Files of the instances, for error messages."""


@dataclass(frozen=True)
class ModelScores:
    """One model's captions and what they are worth."""

    tokenised: Captions
    metrics: dict[str, Metric]
    vocabulary_size: int
    mean_words: float
    self_bleu: float | None
    """None for a single caption."""


@dataclass(frozen=True)
class Evaluation:
    """Several models on the same images."""

    images: list[str]
    tokeniser: str
    models: dict[str, ModelScores]
    unavailable: dict[str, str]
    """Metrics (and the PTB tokeniser) that could not be had, and why and what to do."""


def score_models(
    models: Mapping[str, Mapping[str, str]],
    references: Mapping[str, Sequence[str]],
    frequency_captions: Iterable[Sequence[str]] | None = None,
    chair_data: ChairData | None = None,
) -> Evaluation:
    """Score models side by side.

    Args:
        models: each model's name and its captions, as written, one for every image of ``references``.
        references: the human captions of each image, as written.
        frequency_captions: the captions of each image of the corpus that CIDEr-D takes its document frequencies
            from; None takes ``references``.
        chair_data: for CHAIR.

    Raises:
        ValueError: a model and the references do not name the same images, or the objects of an image are missing.
    """
    images = list(references)
    for name, captions in models.items():
        if captions.keys() != references.keys():
            raise ValueError(f"{name} and the references must name the same images")
    corpora = [[list(references[image]) for image in images]]
    corpora += [[[captions[image]] for image in images] for captions in models.values()]
    if frequency_captions is not None:
        corpora.append([list(captions) for captions in frequency_captions])
    unavailable: dict[str, str] = {}
    try:
        tokenised, tokeniser = _tokenise(corpora, by_ptb=True), PTB
    except JavaError as error:
        tokenised, tokeniser = _tokenise(corpora, by_ptb=False), OWN_TOKENISER
        unavailable["ptb_tokeniser"] = str(error)
    human: References = dict(zip(images, tokenised[0], strict=True))
    said: dict[str, Captions] = {
        name: {image: group[0] for image, group in zip(images, corpus, strict=True)}
        for name, corpus in zip(models, tokenised[1:], strict=False)
    }
    cider_d = TextCiderD(human, None if frequency_captions is None else tokenised[-1])
    scores: dict[str, dict[str, Metric]] = {}
    for name, captions in said.items():
        metrics = [*coco_metrics(captions, human), cider_d.metric(captions)]
        if chair_data:
            metrics += chair(captions, human, chair_data.objects, chair_data.synonyms)
        scores[name] = {metric.name: metric for metric in metrics}
    for key, measure in (("meteor", meteor), ("spice", spice)):
        try:
            if reason := unavailable.get("ptb_tokeniser"):
                raise JavaError(reason)
            for metrics_of, metric in zip(scores.values(), measure(list(said.values()), human), strict=True):
                metrics_of[key] = metric
        except JavaError as error:
            unavailable[key] = str(error)
    return Evaluation(
        images,
        tokeniser,
        {
            name: ModelScores(
                tokenised=captions,
                metrics=scores[name],
                vocabulary_size=vocabulary_size(list(captions.values())),
                mean_words=mean_words(list(captions.values())),
                self_bleu=self_bleu(list(captions.values())) if len(captions) > 1 else None,
            )
            for name, captions in said.items()
        },
        unavailable,
    )


def _tokenise(corpora: Sequence[Sequence[Sequence[str]]], by_ptb: bool) -> list[list[list[str]]]:
    """Space-joined tokens of every caption of every image of every corpus; PTB's process starts once."""
    flat = [caption for corpus in corpora for group in corpus for caption in group]
    tokenised = iter(ptb_tokenize(flat) if by_ptb else [" ".join(tokenize(caption)) for caption in flat])
    return [[[next(tokenised) for _ in group] for group in corpus] for corpus in corpora]
