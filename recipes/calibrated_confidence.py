"""Fit the calibrated confidence of a bundle: what share of its captions is true, by their features.

    python -m recipes.calibrated_confidence BUNDLE

Captions photographs that people have described or labelled, judges each caption by what they say, fits a logistic
regression to the sources of :func:`fitted_photographs`, measures it on others, writes it to the bundle's manifest, and
prints figures as JSON.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.captioning import BundleError, Captioner
from smart_caption_ros.captioning.bundle import CALIBRATED_CONFIDENCE, write_manifest
from smart_caption_ros.captioning.calibration import FEATURES
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.grounding import CoverageError, guide_words
from smart_caption_ros.grounding.nouns import NounFinder
from training.command_line import DataFolderOption, run_command
from training.data.caption_dataset import CaptionDataset
from training.data.coco import read_captions, read_objects
from training.data.coco_photographs import CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.json_files import read_json_lines
from training.data.photographs import PhotographArchive, read_photograph
from training.errors import DataError
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.chair import Synonyms
from training.evaluation.metrics.metric import Metric

FLICKR8K_PHOTOGRAPHS = 300
"""Photographs of each split of Flickr8k, the first ones."""
BINS, FOLDS, PENALTY = 10, 5, 1.0
"""Bins of the calibration error, folds of the cross-validation, and the penalty of the squared weights."""


@dataclass(frozen=True)
class Photograph:
    """A photograph and what people say of it."""

    read: Callable[[], NDArray[np.uint8]]
    captions: Sequence[str] = ()
    objects: Collection[str] = ()
    """Names of what is there."""
    absent: Collection[str] | None = None
    """Names of what is not there; None: all of COCO's objects that neither captions nor ``objects`` name."""


@dataclass(frozen=True)
class Judge:
    """Decides whether a caption is true. Places and actions are not judged, only things."""

    synonyms: Synonyms
    finder: NounFinder

    def is_true(self, caption: str, photograph: Photograph) -> bool | None:
        """Return whether a caption names nothing that is absent and at least one thing that is confirmed.

        Returns:
            None for a photograph without captions, of whose labels the caption names none.
        """
        named = self._terms(caption)
        shown = {term for text in (*photograph.captions, *photograph.objects) for term in self._terms(text)}
        if photograph.absent is None:
            absent = {*self.synonyms.mentions(caption)}
        else:
            absent = {term for name in photograph.absent for term in self._terms(name)}
        is_wrong, is_confirmed = bool(named & absent - shown), bool(named & shown)
        if not (is_wrong or is_confirmed or photograph.captions):
            return None
        return is_confirmed and not is_wrong

    def _terms(self, text: str) -> set[str]:
        """Collect the classes of COCO and the nouns that a text names."""
        words = " ".join(re.findall(r"[a-z']+", text.lower()))
        return {*self.synonyms.mentions(words), *(noun.lemma for noun in self.finder.nouns(words))}


@dataclass(frozen=True)
class Judged:
    """Captions of a source, those alone that could be judged."""

    features: NDArray[np.float64]
    """(captions, features), in the order of :data:`FEATURES`."""
    truth: NDArray[np.float64]
    """(captions,), 1 where the caption is true and 0 elsewhere."""

    def rows(self, chosen: NDArray[np.bool_]) -> "Judged":
        """Take the captions where ``chosen``, (captions,), is True."""
        return Judged(self.features[chosen], self.truth[chosen])


def fitted_photographs(data: Path) -> dict[str, list[Photograph]]:
    """Collect the photographs to fit, by source: dev splits, and labels that are for measuring alone."""
    coco = CocoPhotographs(data / "coco_photographs")
    truth = PhotographArchive(data / "indoor_truth" / "images_256.zip")
    return {
        "coco_photographs dev": [
            replace(photograph, objects=coco.photographs[image].objects)
            for image, photograph in _split(coco, "dev").items()
        ],
        "flickr8k dev": [*_split(Flickr8k(data / "flickr8k"), "dev").values()][:FLICKR8K_PHOTOGRAPHS],
        "indoor_truth": [
            Photograph(partial(truth.read, entry["image"]), (), entry["objects"], entry.get("absent", ()))
            for entry in read_json_lines(data / "indoor_truth" / "labels.jsonl")
        ],
    }


def measured_photographs(data: Path) -> dict[str, list[Photograph]]:
    """Collect the photographs to measure on, by source."""
    mini = data / "coco_mini"
    objects = read_objects([mini / "instances_val2017.json"])
    return {
        "coco_mini validation": _coco_file(mini / "captions_val2017.json", mini / "images", objects),
        "flickr8k test": [*_split(Flickr8k(data / "flickr8k"), "test").values()][:FLICKR8K_PHOTOGRAPHS],
    }


def _split(dataset: CaptionDataset, split: str) -> dict[str, Photograph]:
    return {
        image: Photograph(partial(dataset.read_image, image), dataset.captions[image]) for image in dataset.split(split)
    }


def _coco_file(path: Path, images: Path, objects: Mapping[str, Collection[str]] | None = None) -> list[Photograph]:
    found, objects = read_captions(path), objects or {}
    return [
        Photograph(partial(read_photograph, images / found.file_names[image], image), captions, objects.get(image, ()))
        for image, captions in found.captions.items()
    ]


class _Recorder:
    """Takes the place of a bundle's calibration, to keep the features of the last caption."""

    def __init__(self) -> None:
        self.features: Mapping[str, float] = {}

    def __call__(self, features: Mapping[str, float]) -> float:
        self.features = features
        return math.nan


def caption_and_judge(
    captioner: Captioner, judge: Judge, sources: Mapping[str, Sequence[Photograph]]
) -> dict[str, Judged]:
    """Caption photographs and judge the captions, by source.

    Raises:
        DataError: a photograph is missing, or no caption of a source could be judged.
    """
    recorder = _Recorder()
    captioner.bundle = replace(captioner.bundle, calibration=recorder)
    judged = {}
    for source, photographs in sources.items():
        features, truth = [], []
        for photograph in tqdm(photographs, source, unit="photograph", mininterval=1):
            caption = captioner.caption(photograph.read())
            is_true = judge.is_true(caption.text, photograph) if caption.text else None
            if is_true is not None:
                features.append([recorder.features[name] for name in FEATURES])
                truth.append(is_true)
        if len(set(truth)) < 2:
            raise DataError(f"{source}: {len(truth)} captions were judged, all alike, so nothing can be fitted")
        judged[source] = Judged(np.array(features), np.array(truth, np.float64))
    return judged


def fit(sources: Sequence[Judged]) -> NDArray[np.float64]:
    """Fit a logistic regression by Newton's method, in which every source has the same weight.

    Returns:
        (1 + features,): the bias and the weights.
    """
    rows = np.concatenate([_with_ones(source.features) for source in sources])
    truth = np.concatenate([source.truth for source in sources])
    counts = np.concatenate([np.full(len(source.truth), 1 / len(source.truth)) for source in sources])
    counts *= len(truth) / len(sources)
    penalty = PENALTY * np.diag([0.0, *np.ones(len(FEATURES))])
    found = np.zeros(len(penalty))
    for _ in range(25):
        shares = _logistic(rows @ found)
        gradient = rows.T @ (counts * (truth - shares)) - penalty @ found
        curvature = (rows * (counts * shares * (1 - shares))[:, None]).T @ rows + penalty
        found = found + np.linalg.solve(curvature, gradient)
    return found


def predict(fitted: NDArray[np.float64], source: Judged) -> NDArray[np.float64]:
    """Predict the share of true captions, (captions,)."""
    return _logistic(_with_ones(source.features) @ fitted)


def cross_validate(sources: Sequence[Judged]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predict every caption from a fit to the other folds; return shares and truth, (captions,) each."""
    shares, truth = [], []
    for fold in range(FOLDS):
        in_fold = [np.arange(len(source.truth)) % FOLDS == fold for source in sources]
        fitted = fit([source.rows(~rows) for source, rows in zip(sources, in_fold, strict=True)])
        for source, rows in zip(sources, in_fold, strict=True):
            shares.append(predict(fitted, source.rows(rows)))
            truth.append(source.truth[rows])
    return np.concatenate(shares), np.concatenate(truth)


def _with_ones(features: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


def _logistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (1 + np.tanh(values / 2))


def figures(shares: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, Any]:
    """Compare predicted shares with the truth, (captions,) each.

    Returns:
        JSON values: the expected calibration error (Naeini et al. 2015) over bins of equal width with its 95 %
        interval, and over bins of equal count; the area under the ROC curve; and for each bin of equal width that is
        not empty the captions, their mean share and how many of them are true, from 0 to 1.
    """
    bins = np.minimum((shares * BINS).astype(int), BINS - 1)
    error = _calibration_error(shares, truth, bins)
    interval = Bootstrap(len(truth)).interval(error)
    equal_count = np.argsort(np.argsort(shares, kind="stable")) * BINS // len(shares)
    return {
        "captions": len(truth),
        "true": round(float(truth.mean()), 3),
        "expected_calibration_error": round(error.value, 3),
        "interval": [round(interval.low, 3), round(interval.high, 3)],
        "expected_calibration_error_equal_count": round(_calibration_error(shares, truth, equal_count).value, 3),
        "auc": area_under_curve(shares, truth),
        "curve": [
            [int(rows.sum()), round(float(shares[rows].mean()), 3), round(float(truth[rows].mean()), 3)]
            for rows in (bins == number for number in range(BINS))
            if rows.any()
        ],
    }


def area_under_curve(values: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return the share of pairs of a true and a false caption in which the true one has the higher value."""
    differences = values[truth == 1][:, None] - values[truth == 0]
    return round(float(np.mean((differences > 0) + 0.5 * (differences == 0))), 3)


def _calibration_error(shares: NDArray[np.float64], truth: NDArray[np.float64], bins: NDArray[np.int_]) -> Metric:
    differences = (shares - truth)[:, None] * (bins[:, None] == np.arange(BINS))
    statistics = np.concatenate([differences, np.ones((len(shares), 1))], axis=1)
    return Metric(
        "expected_calibration_error", statistics, lambda sums: abs(sums[:, :-1]).sum(axis=1) / sums[:, -1], shares
    )


def calibrate(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of the bundle; its manifest is changed.")],
    data: DataFolderOption,
) -> None:
    """Fit the calibrated confidence of a bundle and write it to its manifest."""
    captioner = guide_words(Captioner.from_bundle(bundle, "onnxruntime-cpu", threads=1))
    judge = Judge(Synonyms.load(data / "lexicon" / "chair_synonyms.txt"), NounFinder.load())
    sources = fitted_photographs(data)
    judged = caption_and_judge(captioner, judge, sources | measured_photographs(data))
    fitting = [judged[source] for source in sources]
    kept = {source: captions for source, captions in judged.items() if source not in sources}
    fitted = fit(fitting)
    bias, *weights = (round(float(value), 4) for value in fitted)
    calibration = {"bias": bias, "weights": dict(zip(FEATURES, weights, strict=True))}
    write_manifest(bundle, {**captioner.bundle.manifest, CALIBRATED_CONFIDENCE: calibration})
    predicted = {source: predict(fitted, captions) for source, captions in kept.items()}
    document = {
        "bundle": captioner.model,
        CALIBRATED_CONFIDENCE: calibration,
        "kept": figures(
            np.concatenate([*predicted.values()]), np.concatenate([captions.truth for captions in kept.values()])
        ),
        "kept_by_source": {source: figures(predicted[source], kept[source].truth) for source in kept},
        "cross_validation": figures(*cross_validate(fitting)),
        "sources": {
            source: {
                "captions": len(captions.truth),
                "true": round(float(captions.truth.mean()), 3),
                "auc_of_features": {
                    name: area_under_curve(column, captions.truth)
                    for name, column in zip(FEATURES, captions.features.T, strict=True)
                },
            }
            for source, captions in judged.items()
        },
    }
    print(json.dumps(document))


def main() -> int:
    return run_command(
        calibrate, "python -m recipes.calibrated_confidence", (BundleError, CoverageError, DataError, EngineError)
    )


if __name__ == "__main__":
    sys.exit(main())
