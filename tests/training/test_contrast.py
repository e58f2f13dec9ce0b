"""The command that makes a trained captioner contrastive."""

import sys
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.export.command import export
from tests.tiny_model import tiny_trained
from tests.training.small_coco_photographs import make_coco_photographs
from tests.training.small_flickr8k import make_data
from training import contrast
from training.data.held_out import kept_aside_rooms
from training.data.scene_photographs import scene_photographs
from training.engine.trained_captioner import TrainedCaptioner


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder)
    make_coco_photographs(folder)
    (folder / "nyu_rooms").mkdir()
    random = np.random.default_rng(0)
    with zipfile.ZipFile(folder / "nyu_rooms" / "images.zip", "w") as archive:
        for name in ("image3.jpg", "image9.jpg", kept_aside_rooms()[0]):
            drawn = np.full((90, 120, 3), random.integers(256, size=3), np.uint8)
            archive.writestr(name, cv2.imencode(".jpg", drawn)[1].tobytes())
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    trained = tiny_trained()
    phase = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3}
    trained.record["experiment"] = {**trained.record["experiment"], "name": "tiny", "phases": [phase]}
    trained.save(tmp_path / "best.safetensors")
    return tmp_path / "best.safetensors"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> int:
    monkeypatch.setattr(sys, "argv", ["contrast", *map(str, arguments)])
    return contrast.main()


def test_photographs_are_those_of_training_parts_without_rooms_that_are_kept_aside(data: Path) -> None:
    assert "image3.jpg" not in kept_aside_rooms()
    photographs = scene_photographs(data)
    # Two rooms; the two train photographs of coco_photographs and every fourth of Flickr8k's twelve.
    assert [sum(each.inside is inside for each in photographs) for inside in (True, False)] == [2, 5]
    assert {each.read(64).shape for each in photographs} == {(64, 64, 3)}


@pytest.mark.long
def test_a_contrastive_captioner_is_written_and_exported_as_any_other(
    model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "contrast.safetensors"
    options = ["--strength", "0.5", "--scenes", "2", "--opening-words", "1", "--epochs", "2"]
    assert run(monkeypatch, model, "-o", output, "--data", data, *options) == 0
    assert "strength 0.5, from 2 photographs inside and 5 elsewhere" in capsys.readouterr().out
    made = TrainedCaptioner.load(output)
    assert made.family == "contrastive"
    assert (made.record["contrast"]["strength"], made.captioner.config.opening_words) == (0.5, 1)  # type: ignore[attr-defined]
    assert any(entry["name"].startswith("NYU Depth") for entry in made.record["backbone_trained_on"])
    done = export(output, tmp_path / "bundle", "--check-images", 4, "--no-static")
    assert done.status == 0, done.err


def test_contrast_of_a_contrastive_captioner_and_missing_data_are_refused_with_the_file(
    model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, again = tmp_path / "contrast.safetensors", tmp_path / "again.safetensors"
    assert run(monkeypatch, model, "-o", output, "--data", data, "--epochs", "1") == 0
    assert run(monkeypatch, output, "-o", again, "--data", data) == 1
    assert f"error: {output}: contrast needs a single captioner" in capsys.readouterr().err
    assert run(monkeypatch, model, "-o", again, "--data", tmp_path / "none") == 1
    assert "none" in capsys.readouterr().err
    assert not again.exists()
