"""Fit what share of a bundle's captions is true to their confidence, and write it to the bundle's manifest.

    python -m recipes.calibrated_confidence BUNDLE

The bundle captions the dev part of looked_at. A caption is true if it names at least one thing and nothing that the
exhaustive list and the captions of its photograph lack. A logistic regression over the features of
:mod:`smart_caption_ros.captioning.calibration` is fitted to that and measured on folds that it was not fitted to;
figures are printed as JSON.
"""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from tqdm import tqdm

from smart_caption_ros.captioning import BundleError, Captioner
from smart_caption_ros.captioning.bundle import CALIBRATED_CONFIDENCE, write_manifest
from smart_caption_ros.captioning.calibration import FEATURES
from smart_caption_ros.engines.base import EngineError
from smart_caption_ros.grounding import CoverageError, guide_words
from training.command_line import DataFolderOption, run_command
from training.data.looked_at import LookedAt
from training.errors import DataError
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.metric import Metric
from training.evaluation.references import References

BINS, FOLDS, PENALTY = 10, 10, 1.0
"""Bins of the calibration error, folds of the cross-validation, and the penalty of the squared weights."""


class _Recorder:
    """Takes the place of a bundle's calibration, to keep the features of the last caption."""

    def __init__(self) -> None:
        self.features: Mapping[str, float] = {}

    def __call__(self, features: Mapping[str, float]) -> float:
        self.features = features
        return math.nan


def caption_and_judge(captioner: Captioner, references: References) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Caption photographs and judge the captions by the things that the photographs show.

    Returns:
        (photographs, features) in the order of :data:`FEATURES`; and (photographs,) 1 where the caption is true.

    Raises:
        DataError: a photograph is missing, or all captions are true or all are false.
    """
    assert references.shown is not None
    assert references.read_image is not None
    recorder = _Recorder()
    captioner.bundle = replace(captioner.bundle, calibration=recorder)
    features, truth = [], []
    for image in tqdm(references.captions, captioner.model, unit="photograph", mininterval=1):
        caption = captioner.caption(references.read_image(image))
        judged = references.shown.judge(image, caption.text)
        features.append([recorder.features[name] for name in FEATURES])
        truth.append(bool(judged) and all(judged.values()))
    if len(set(truth)) < 2:
        raise DataError(
            f"{references.name}: the {len(truth)} captions are all true or all false, nothing can be fitted"
        )
    return np.array(features), np.array(truth, np.float64)


def fit(features: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit a logistic regression with a small penalty of the weights: (1 + features,), the bias first."""
    signs = 2 * truth - 1

    def loss(weights: NDArray[np.float64]) -> float:
        costs = np.logaddexp(0, -signs * (weights[0] + features @ weights[1:])).sum()
        return float(costs + PENALTY / 2 * (weights[1:] ** 2).sum())

    found: NDArray[np.float64] = minimize(loss, np.zeros(1 + features.shape[1])).x
    return found


def predict(weights: NDArray[np.float64], features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predict the share of true captions, (captions,)."""
    shares: NDArray[np.float64] = expit(weights[0] + features @ weights[1:])
    return shares


def cross_validate(features: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predict every caption, (captions,), by a fit to the other folds; neighbours, often one place, share a fold."""
    fold_of = np.arange(len(truth)) * FOLDS // len(truth)
    shares = np.empty(len(truth))
    for fold in range(FOLDS):
        own = fold_of == fold
        shares[own] = predict(fit(features[~own], truth[~own]), features[own])
    return shares


def figures(shares: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, Any]:
    """Compare predicted shares with the truth, (captions,) each.

    Returns:
        JSON values: the expected calibration error (Naeini et al. 2015) with its 95 % interval, the area under the ROC
        curve, and for each bin that is not empty the captions, their mean share and how many of them are true.
    """
    bins = np.minimum((shares * BINS).astype(int), BINS - 1)
    differences = (shares - truth)[:, None] * (bins[:, None] == np.arange(BINS))
    statistics = np.concatenate([differences, np.ones((len(shares), 1))], axis=1)
    error = Metric(
        "expected_calibration_error", statistics, lambda sums: abs(sums[:, :-1]).sum(axis=1) / sums[:, -1], shares
    )
    interval = Bootstrap(len(truth)).interval(error)
    pairs = shares[truth == 1][:, None] - shares[truth == 0]
    return {
        "captions": len(truth),
        "true": round(float(truth.mean()), 3),
        "expected_calibration_error": round(error.value, 3),
        "interval": [round(interval.low, 3), round(interval.high, 3)],
        "auc": round(float(np.mean((pairs > 0) + 0.5 * (pairs == 0))), 3) if pairs.size else None,
        "curve": [
            [int(rows.sum()), round(float(shares[rows].mean()), 3), round(float(truth[rows].mean()), 3)]
            for rows in (bins == number for number in range(BINS))
            if rows.any()
        ],
    }


def calibrate(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of the bundle; its manifest is changed.")],
    data: DataFolderOption,
) -> None:
    """Fit the calibrated confidence of a bundle and write it to its manifest."""
    captioner = guide_words(Captioner.from_bundle(bundle, "onnxruntime-cpu", threads=1))
    references = References.of_dataset("looked_at", LookedAt().open(data), "dev")
    features, truth = caption_and_judge(captioner, references)
    bias, *weights = (round(float(value), 4) for value in fit(features, truth))
    calibration = {"bias": bias, "weights": dict(zip(FEATURES, weights, strict=True))}
    write_manifest(bundle, {**captioner.bundle.manifest, CALIBRATED_CONFIDENCE: calibration})
    shares = cross_validate(features, truth)
    kinds = np.array([references.domains[image] for image in references.captions])
    document = {
        "bundle": captioner.model,
        CALIBRATED_CONFIDENCE: calibration,
        "cross_validation": figures(shares, truth),
        "by_kind": {str(kind): figures(shares[kinds == kind], truth[kinds == kind]) for kind in np.unique(kinds)},
    }
    print(json.dumps(document))


def main() -> int:
    return run_command(
        calibrate, "python -m recipes.calibrated_confidence", (BundleError, CoverageError, DataError, EngineError)
    )


if __name__ == "__main__":
    sys.exit(main())
