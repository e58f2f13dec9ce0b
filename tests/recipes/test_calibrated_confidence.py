"""The calibrated confidence: the fit, its figures, and the command."""

import json
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

import recipes.calibrated_confidence as recipe
from recipes.calibrated_confidence import figures, fit
from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.calibration import FEATURES
from tests.training.small_looked_at import make_looked_at
from training.evaluation.metrics.truth import ShownThings

Captions = tuple[NDArray[np.float64], NDArray[np.float64]]


def drawn(captions, bias, seed):
    """Draw captions whose truth depends on the second feature alone."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(captions, len(FEATURES)))
    return features, (random.random(captions) < 1 / (1 + np.exp(-bias - 2 * features[:, 1]))).astype(float)


def test_the_fit_finds_the_weights():
    assert fit(*drawn(12000, 1.0, 0)) == pytest.approx([1.0, 0.0, 2.0, 0.0, 0.0], abs=0.15)


def test_the_calibration_error_is_the_mean_distance_of_share_and_truth():
    found = figures(np.repeat([0.95, 0.55], [30, 10]), np.repeat([1.0, 0.0, 1.0], [15, 20, 5]))
    assert found["expected_calibration_error"] == pytest.approx((30 * 0.45 + 10 * 0.05) / 40, abs=1e-3)
    assert found["curve"] == [[10, 0.55, 0.5], [30, 0.95, 0.5]]
    assert found["interval"][0] < found["expected_calibration_error"] < found["interval"][1]


def test_the_command_writes_a_table_by_which_the_bundle_calibrates_its_captions(
    bundle_copy, tmp_path, monkeypatch, capsys
):
    data = make_looked_at(tmp_path)
    monkeypatch.setattr(ShownThings, "judge", lambda self, image, caption: {"thing": image.endswith("c.jpg")})
    monkeypatch.setattr(sys, "argv", ["calibrated_confidence", str(bundle_copy), "--data", str(data)])
    assert recipe.main() == 0
    document = json.loads(capsys.readouterr().out)
    assert document["calibrated_confidence"] == Bundle.load(bundle_copy).manifest["calibrated_confidence"]
    assert document["cross_validation"]["captions"] == 2
    assert set(document["by_kind"]) == {"homes seen by a robot", "messy rooms"}
    assert Captioner.from_bundle(bundle_copy, "onnxruntime-cpu", threads=1).bundle.calibration is not None
