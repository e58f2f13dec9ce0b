"""The calibrated confidence: what counts as true, the fit, its figures, and the command."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import recipes.calibrated_confidence as recipe
from recipes.calibrated_confidence import Judge, Judged, Photograph, area_under_curve, cross_validate, figures, fit
from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.calibration import FEATURES
from smart_caption_ros.grounding.nouns import NounFinder
from tests.frames import blobs
from training.evaluation.metrics.chair import Synonyms

FRAME = np.zeros((8, 8, 3), np.uint8)


def photograph(captions: tuple[str, ...] = (), objects: tuple[str, ...] = (), **fields: object) -> Photograph:
    return Photograph(lambda: FRAME, captions, objects, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def judge() -> Judge:
    classes = {"chair": "chair", "couch": "couch", "sofa": "couch", "laptop": "laptop", "computer": "laptop"}
    return Judge(Synonyms({**classes, "man": "person", "person": "person"}), NounFinder.load())


@pytest.mark.parametrize(
    ("caption", "shown", "is_true"),
    [
        ("a sofa by a window", photograph(objects=("couch",)), True),
        ("a room with windows", photograph(("A window, seen from below.",)), True),
        ("a man on a chair", photograph(("a person sits",), ("chair",)), True),
        ("a computer on a sofa", photograph(("a sofa",), ("couch",)), False),
        ("a red kite", photograph(("a sofa",)), False),
        ("a red kite", photograph(objects=("couch",)), None),
        ("a laptop by a door", photograph(objects=("door",), absent=("laptop",)), False),
        ("a chair by a door", photograph(objects=("door",), absent=("laptop",)), True),
        ("a chair", photograph(objects=("door",), absent=("laptop",)), None),
    ],
)
def test_a_caption_is_true_that_names_nothing_absent_and_something_confirmed(
    judge: Judge, caption: str, shown: Photograph, is_true: bool | None
) -> None:
    assert judge.is_true(caption, shown) is is_true


def drawn(captions: int, bias: float, seed: int) -> Judged:
    """Draw captions whose truth depends on the second feature alone."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(captions, len(FEATURES)))
    return Judged(features, (random.random(captions) < 1 / (1 + np.exp(-bias - 2 * features[:, 1]))).astype(float))


def test_the_fit_finds_the_weights_and_every_source_counts_the_same() -> None:
    bias, *weights = fit([drawn(6000, 1.0, 0), drawn(6000, 1.0, 1)])
    assert [bias, *weights] == pytest.approx([1.0, 0.0, 2.0, 0.0, 0.0], abs=0.15)
    few, many = drawn(500, -1.0, 2), drawn(6000, 1.0, 3)
    assert abs(fit([few, many])[0]) < 0.25


def test_shares_that_come_true_have_no_calibration_error() -> None:
    found = figures(*cross_validate([drawn(4000, 0.5, 4)]))
    assert found["expected_calibration_error"] < 0.03
    assert found["auc"] > 0.8
    assert sum(captions for captions, _, _ in found["curve"]) == found["captions"] == 4000


def test_the_calibration_error_is_the_mean_distance_of_share_and_truth() -> None:
    found = figures(np.repeat([0.95, 0.55], [30, 10]), np.repeat([1.0, 0.0, 1.0], [15, 20, 5]))
    assert found["expected_calibration_error"] == pytest.approx((30 * 0.45 + 10 * 0.05) / 40, abs=1e-3)
    assert found["curve"] == [[10, 0.55, 0.5], [30, 0.95, 0.5]]
    assert found["interval"][0] < found["expected_calibration_error"] < found["interval"][1]
    assert area_under_curve(np.array([1.0, 2.0, 2.0]), np.array([0.0, 1.0, 0.0])) == 0.75


def test_the_command_writes_a_table_by_which_the_bundle_calibrates_its_captions(
    bundle_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = [
        Photograph(lambda seed=seed: blobs(seed, 50, 60), (str(seed % 3 > 0),))  # type: ignore[misc]
        for seed in range(12)
    ]
    monkeypatch.setattr(recipe, "fitted_photographs", lambda data: {"fitted": source})
    monkeypatch.setattr(recipe, "measured_photographs", lambda data: {"kept": source[:6]})
    monkeypatch.setattr(Judge, "is_true", lambda self, caption, photograph: photograph.captions == ("True",))
    (tmp_path / "lexicon").mkdir()
    (tmp_path / "lexicon" / "chair_synonyms.txt").write_text("chair, seat\n")
    monkeypatch.setattr(sys, "argv", ["calibrated_confidence", str(bundle_copy), "--data", str(tmp_path)])
    assert recipe.main() == 0
    document = json.loads(capsys.readouterr().out)
    written = Bundle.load(bundle_copy).manifest["calibrated_confidence"]
    assert document["calibrated_confidence"] == written
    assert (document["kept"]["captions"], document["cross_validation"]["captions"]) == (6, 12)
    captioner = Captioner.from_bundle(bundle_copy, "onnxruntime-cpu", threads=1)
    shares = [captioner.caption(shown.read()).calibrated_confidence for shown in source[:6]]
    assert np.mean(shares) == pytest.approx(sum(n * share for n, share, _ in document["kept"]["curve"]) / 6, abs=1e-3)


def test_missing_data_is_one_sentence(
    bundle_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calibrated_confidence", str(bundle_copy), "--data", str(tmp_path)])
    assert recipe.main() == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'lexicon' / 'chair_synonyms.txt'}")
