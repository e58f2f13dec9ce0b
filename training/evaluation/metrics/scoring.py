"""All metrics of one or several models' captions of the same images."""

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
    """Inputs of CHAIR beside the captions."""

    objects: Mapping[str, Iterable[str]]
    """Image id to the class names of its annotated instances."""
    synonyms: Synonyms
    source: str = "the instances"
    """Files of the instances, for error messages."""


@dataclass(frozen=True)
class ModelScores:
    """Scores of one model."""

    tokenised: Captions
    metrics: dict[str, Metric]
    """By name."""
    vocabulary_size: int
    """Distinct words of all captions."""
    mean_words: float
    """Mean caption length in words."""
    self_bleu: float | None
    """None for a single caption."""


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


def score_models(
    models: Mapping[str, Mapping[str, str]],
    references: Mapping[str, Sequence[str]],
    frequency_captions: Iterable[Sequence[str]] | None = None,
    chair_data: ChairData | None = None,
) -> Evaluation:
    """Score several models.

    Args:
        models: by name of the model, for each image of ``references`` a caption as written.
        references: for each image the human captions as written.
        frequency_captions: for each image of a corpus its captions as written, for the document frequencies of CIDEr-D;
            None takes ``references``.
        chair_data: inputs of CHAIR; None leaves CHAIR out.

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
    """Tokenise every caption of every image of every corpus; one process of the PTB tokeniser serves all."""
    flat = [caption for corpus in corpora for group in corpus for caption in group]
    tokenised = iter(ptb_tokenize(flat) if by_ptb else [" ".join(tokenize(caption)) for caption in flat])
    return [[[next(tokenised) for _ in group] for group in corpus] for corpus in corpora]
