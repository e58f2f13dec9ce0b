"""The picture of the attributions of words to regions."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from tests.tiny_model import TINY_SIZES, tiny_trained
from tests.training.region_files import WIDTH, regions, write_npz
from training import attributions
from training.attributions import draw_attributions
from training.engine.trained_captioner import TrainedCaptioner
from training.models.up_down import UpDown, UpDownConfig


def saved(path: Path, features: Path | None = None) -> Path:
    """Write a captioner that is quick to attribute, of photographs or of stored features."""
    torch.manual_seed(0)
    trained = tiny_trained()
    assert trained.backbone is not None
    width = trained.backbone.token_width if features is None else WIDTH
    captioner = UpDown(UpDownConfig(len(trained.vocabulary), width, **TINY_SIZES["up_down"])).eval()
    experiment = {
        "name": "any",
        "family": "up_down",
        "features": {"npz": str(features), "width": WIDTH},
        "phases": [{"name": "any", "epochs": 1, "learning_rate": 0.0}],
    }
    backbone = trained.backbone if features is None else None
    TrainedCaptioner("up_down", captioner, backbone, trained.vocabulary, {"experiment": experiment}).save(path)
    return path


def photograph(path: Path) -> Path:
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 255, (90, 120, 3), np.uint8))
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["attributions", *map(str, arguments), "--max-words", "4", "--beam-size", "2"])
    return attributions.main()


def test_the_command_draws_each_word_of_a_photographs_caption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tmp_path / "best.safetensors")
    assert run(monkeypatch, model, photograph(tmp_path / "a.png"), "-o", tmp_path / "out.png") == 0
    words = capsys.readouterr().out.split("a.png: ")[1].split()[::2]
    picture = cv2.imread(str(tmp_path / "out.png"))
    assert words
    assert picture.shape[1] >= len(words) * 120


def test_a_captioner_of_stored_features_reads_those_of_the_photographs_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    features = write_npz(tmp_path, {"9": regions(3)})
    (tmp_path / "bundle").mkdir()
    saved(tmp_path / "bundle" / "captioner.safetensors", features)
    image, output = photograph(tmp_path / "COCO_val2014_000000000009.png"), tmp_path / "out.png"
    assert run(monkeypatch, tmp_path / "bundle", image, "-o", output) == 0
    assert output.exists()
    assert run(monkeypatch, tmp_path / "bundle", photograph(tmp_path / "b.png"), "-o", output) == 1
    assert "stored features have no image b" in capsys.readouterr().err


def test_a_bundle_without_a_checkpoint_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path, tmp_path / "a.png", "-o", tmp_path / "out.png") == 1
    assert "graphs, which have no gradients" in capsys.readouterr().err


def test_regions_are_as_bright_as_their_scores_and_the_greatest_is_outlined() -> None:
    boxes = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [0.4, 0.4, 0.6, 0.6]], np.float32)
    white = np.full((260, 260, 3), 255, np.uint8)
    picture = draw_attributions(["dog"], torch.tensor([[0.0, 1.0, 0.5]]), white, boxes)
    panel = picture[12 : 12 + 260, 12 : 12 + 260]
    assert panel[20, 20].tolist() == [51] * 3, "the least score"
    assert panel[20, 200].tolist() == [255] * 3, "the greatest score"
    assert panel[130, 120].tolist() == [153] * 3, "the middle"
    assert panel[130, 140].tolist() == [255] * 3, "where regions overlap, the greater score"
    assert panel[100, 130].tolist() == [0, 0, 255]
