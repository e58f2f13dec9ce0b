"""Scoring the captions of several models side by side, and the outputs: table, JSON document, manifests."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from tqdm import tqdm

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.bundle import write_manifest
from smart_caption_ros.grounding.objects_guide import BIAS, OFF
from training.errors import DataError
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.learned import BERT_S, CLIP_S, PAC_S, BertScore, ClipScore
from training.evaluation.metrics.metric import Metric, MetricError
from training.evaluation.metrics.scoring import PTB_RULE, ChairData, Evaluation, score_models
from training.evaluation.metrics.truth import TRUTH, truth
from training.evaluation.references import References
from training.evaluation.report import as_document, as_table
from training.evaluation.similar_images import similar_images

BATCH = 16
"""Images that a bundle captions at once."""


@dataclass(frozen=True)
class ModelCaptions:
    """Captions of a model and their origin."""

    source: str
    """File or folder."""
    captions: Mapping[str, str]
    """By image id."""
    references: Mapping[str, Sequence[str]] | None = None
    """Human captions to compare with, by image id; None takes those of the data set."""
    captioner: Captioner | None = None
    """Captioner of a bundle; None for result files and checkpoints."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """JSON values: engine, beam size."""


PERSON = "a person"
"""Name of the human captions among the models."""


def human_captions(references: References, seed: int) -> ModelCaptions:
    """Take a human caption of every image, drawn by chance, to judge it against the others as if a model had said it.

    Raises:
        DataError: an image has fewer than two captions.
    """
    drawn: dict[str, str] = {}
    others: dict[str, list[str]] = {}
    random = np.random.default_rng(seed)
    for image, captions in references.captions.items():
        if len(captions) < 2:
            raise DataError(
                f"image {image} of {references.name} has {len(captions)} human captions; "
                "judging one against the others takes two"
            )
        place = int(random.integers(len(captions)))
        drawn[image] = captions[place]
        others[image] = [*captions[:place], *captions[place + 1 :]]
    source = f"one caption of each image of {references.name}, drawn by seed {seed}, against the others"
    return ModelCaptions(source, drawn, others)


def caption_references(captioner: Captioner, references: References) -> ModelCaptions:
    """Caption the images of the references with a bundle, as the robot does.

    A bundle in 8 bits rounds the inputs of its layers by the range of the whole batch, so its images come one by one.

    Raises:
        DataError: an image is missing or broken.
        EngineError: the engine failed.
    """
    assert references.read_image is not None
    captions: dict[str, str] = {}
    images = list(references.captions)
    in_8_bits = captioner.bundle.manifest.get("precision", {}).get("computed") == "int8"
    size = 1 if in_8_bits else BATCH
    for start in tqdm(range(0, len(images), size), desc=captioner.model, unit="batch"):
        batch = images[start : start + size]
        frames = [references.read_image(image) for image in batch]
        captions.update(zip(batch, captioner.caption_batch(frames), strict=True))
    facts = {
        "engine": captioner.engine,
        "beam_size": captioner.bundle.search.beam_size,
        "objects_guide": OFF if captioner.guide is None else BIAS,
    }
    return ModelCaptions(str(captioner.bundle.path), captions, captioner=captioner, facts=facts)


@dataclass(frozen=True)
class Comparison:
    """Scores of several models on the images that all of them have captioned."""

    references: References
    models: Mapping[str, ModelCaptions]
    captions: Mapping[str, Mapping[str, str]]
    """For each model the captions that were scored, by image id."""
    evaluation: Evaluation
    left_out: Sequence[str]
    """Captions and images that were not scored, one sentence each."""

    @classmethod
    def of(
        cls,
        references: References,
        models: Mapping[str, ModelCaptions],
        chair_data: ChairData | None = None,
        features: Mapping[str, NDArray[np.float32]] | None = None,
        weights: Path | None = None,
        *,
        idf: bool = False,
        rule: str = PTB_RULE,
    ) -> "Comparison":
        """Score the models; where the references are images alone, measure the diversity of the captions.

        Args:
            models: by name; the first is the baseline of differences.
            chair_data: inputs of CHAIR; None leaves CHAIR out.
            features: unit vectors of the images, by which CIDErBtw finds similar ones; None leaves CIDErBtw out.
            weights: folder with the weights of the metrics of :mod:`training.evaluation.metrics.learned`; None leaves
                them out.
            idf: whether BERT-S weighs tokens by their inverse document frequency.
            rule: how texts become words, one of :data:`training.evaluation.metrics.scoring.TOKENISERS`.

        Raises:
            DataError: the models have no image in common, or an image has no annotated objects.
        """
        images = [image for image in references.captions if all(image in model.captions for model in models.values())]
        if not images:
            raise DataError(f"no image has a caption of {' and '.join(models)} and references in {references.name}")
        if chair_data and (lacking := [image for image in images if image not in chair_data.objects]):
            raise DataError(
                f"{len(lacking)} of {len(images)} images are not in {chair_data.source}, for example {lacking[0]}"
            )
        captions = {name: {image: model.captions[image] for image in images} for name, model in models.items()}
        own = {
            name: {image: model.references[image] for image in images}
            for name, model in models.items()
            if model.references is not None
        }
        evaluation = score_models(
            captions,
            {image: references.captions[image] for image in images},
            references.frequency_captions,
            chair_data,
            own_references=own,
            similar=similar_images(features, images, references.domains) if features else None,
            domains=references.domains,
            further={
                **({} if weights is None else _learned_metrics(references, captions, own, weights, idf=idf)),
                **_truth_metrics(references, captions),
            },
            rule=rule,
        )
        if references.has_captions:
            evaluation.unavailable.update(_missing_inputs(chair_data, features))
        return cls(references, models, captions, evaluation, _left_out(references, models, images))

    def table(self, bootstrap: Bootstrap) -> RenderableType:
        """Make the table for the terminal."""
        return as_table(self.evaluation, bootstrap, f"{self.references.name}, {len(self.evaluation.images)} images")

    def document(self, bootstrap: Bootstrap) -> dict[str, Any]:
        """Make the JSON document: scores, intervals, captions and scores of each image."""
        document: dict[str, Any] = {
            "dataset": self.references.name,
            "document_frequencies": self.references.frequencies_from,
            "left_out": self.left_out,
            **as_document(self.evaluation, bootstrap, self.captions),
        }
        for name, model in self.models.items():
            document["models"][name].update(source=model.source, **model.facts)
        return document

    def record(self) -> None:
        """Write the scores of each bundle to its manifest; ``smart-caption bundle inspect`` shows them."""
        for name, captioner in ((name, model.captioner) for name, model in self.models.items() if model.captioner):
            manifest = dict(captioner.bundle.manifest)
            facts = {
                "images": len(self.evaluation.images), "beam_size": captioner.bundle.search.beam_size,
                "tokeniser": self.evaluation.tokeniser, "engine": captioner.engine, "date": time.strftime("%Y-%m-%d"),
            }  # fmt: skip
            values = {
                metric.name: round(metric.value, 4)
                for metric in self.evaluation.models[name].metrics.values()
                if math.isfinite(metric.value)
            }
            manifest["scores"] = {**manifest.get("scores", {}), self.references.name: {**values, **facts}}
            write_manifest(captioner.bundle.path, manifest)


def _truth_metrics(
    references: References, captions: Mapping[str, Mapping[str, str]]
) -> dict[str, Callable[[], list[Metric]]]:
    """Return the metrics by exhaustive lists of things, as :func:`score_models` calls them; none without lists."""
    shown = references.shown
    if shown is None:
        return {}
    judged = [truth(said, shown) for said in captions.values()]
    return {name: partial(list, metrics) for name, metrics in zip(TRUTH, zip(*judged, strict=True), strict=True)}


def _learned_metrics(
    references: References,
    captions: Mapping[str, Mapping[str, str]],
    own_references: Mapping[str, Mapping[str, Sequence[str]]],
    weights: Path,
    *,
    idf: bool,
) -> dict[str, Callable[[], list[Metric]]]:
    """Return the metrics of pretrained networks, as :func:`score_models` calls them."""

    def clip(name: str) -> list[Metric]:
        score = ClipScore(weights / name)
        if references.read_image is None:
            raise MetricError("needs the photographs; give their folder with --images")
        vectors = score.embed_images(list(next(iter(captions.values()))), references.read_image)
        return [score.metric(vectors, list(said.values())) for said in captions.values()]

    def bert() -> list[Metric]:
        score = BertScore(weights / BERT_S, idf=idf)
        human = {model: own_references.get(model, references.captions) for model in captions}
        return [
            score.metric(list(said.values()), [human[model][image] for image in said])
            for model, said in captions.items()
        ]

    measures: dict[str, Callable[[], list[Metric]]] = {CLIP_S: partial(clip, CLIP_S), PAC_S: partial(clip, PAC_S)}
    if references.has_captions:
        measures[BERT_S] = bert
    return measures


def _missing_inputs(chair_data: ChairData | None, features: Mapping[str, NDArray[np.float32]] | None) -> dict[str, str]:
    """Say for each metric that lacks an input how to give it."""
    why: dict[str, str] = {}
    if chair_data is None:
        lacking = "needs annotated objects; give COCO instances of the images with --instances"
        why |= dict.fromkeys(("chair_i", "chair_s", "objects_supported", "captions_supported"), lacking)
    if features is None:
        why["cider_btw"] = "needs the photographs, to find similar ones; give their folder with --images"
    return why


def _left_out(references: References, models: Mapping[str, ModelCaptions], images: Sequence[str]) -> list[str]:
    sentences = []
    for name, model in models.items():
        if extra := len(model.captions.keys() - references.captions.keys()):
            sentences.append(f"{extra} of {len(model.captions)} captions of {name} have no references")
        if lacking := len(references.captions.keys() - model.captions.keys()):
            total = len(references.captions)
            sentences.append(f"{lacking} of {total} images with references have no caption of {name}")
    if sentences:
        sentences.append(f"scored on the {len(images)} images that have both")
    return sentences
