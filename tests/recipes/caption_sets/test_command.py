"""``python -m recipes.caption_sets``: both sets, what is left out, and a second run."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from recipes.caption_sets import labelled_photographs
from recipes.caption_sets.__main__ import main
from tests.recipes.caption_sets.small_caption_data import make_caption_data
from training.configs.schema import DataConfig
from training.data.datasets import open_dataset, provenance


def run(monkeypatch: pytest.MonkeyPatch, data: Path, output: Path, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["caption_sets", "-o", str(output), "--data", str(data), *options])
    return main()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_caption_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, data, folder) == 0
    return folder


def sentences(output: Path, name: str) -> dict[str, list[str]]:
    lines = (output / name / "captions.jsonl").read_text().splitlines()
    return {entry["image"]: entry["sentences"] for entry in map(json.loads, lines)}


def test_photographs_without_peoples_captions_get_some(output: Path) -> None:
    assert sentences(output, "coco_photographs") == {"train_1.jpg": ["a cat is on the grass"]}
    found = sentences(output, "nyu_rooms")
    assert list(found) == ["image1.jpg"]
    assert any("lamp" in sentence and "on a table" in sentence for sentence in found["image1.jpg"])


@pytest.mark.parametrize("name", ["coco_photographs", "nyu_rooms"])
def test_the_sets_are_data_sets_of_an_experiment(data: Path, output: Path, name: str) -> None:
    made = DataConfig("caption_sets", {"folder": str(output), "set": name})
    by_folder = DataConfig("coco_photographs", {"folder": str(output / name)})
    for config in (made, by_folder):
        dataset = open_dataset(config, data)
        images = dataset.split("train")
        assert dataset.read_images(images).shape == (len(images), 224, 224, 3)
    assert len(provenance(made)) >= 1
    assert (output / name / "images_256.zip").is_symlink() == (name == "coco_photographs")


def test_photographs_that_are_kept_aside_are_left_out(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    excluded = labelled_photographs.excluded_photographs
    monkeypatch.setattr(
        labelled_photographs,
        "excluded_photographs",
        lambda folder: excluded(folder) | ({"train_1.jpg"} if folder == "coco_photographs" else set()),
    )
    assert run(monkeypatch, data, tmp_path) == 1
    assert "no photograph of coco_photographs gets a caption" in capsys.readouterr().err


def test_a_second_run_gives_the_same_without_networks(
    data: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = shutil.copytree(output, tmp_path / "again", symlinks=True)
    for file in again.rglob("captions.jsonl"):
        file.unlink()

    def refuse(frames: object) -> None:
        raise AssertionError("computed again")

    for name in ("mean_tokens", "object_counts"):
        monkeypatch.setattr(labelled_photographs, name, lambda network: refuse)
    assert run(monkeypatch, data, again) == 0
    for name in ("coco_photographs", "nyu_rooms"):
        for file in ("captions.jsonl", "images_256.zip"):
            assert (again / name / file).read_bytes() == (output / name / file).read_bytes()


@pytest.mark.parametrize(
    "missing",
    [
        "backbones/mobilenetv2_float32.onnx",
        "caption_texts/sunspot_sentences.txt.gz",
        "detectors/yolox_nano.onnx",
        "nyu_rooms/spatial_sentences.jsonl",
        "lexicon/chair_synonyms.txt",
    ],
)
def test_a_missing_file_is_named(
    data: Path, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    incomplete = shutil.copytree(data, tmp_path / "data")
    (incomplete / missing).unlink()
    assert run(monkeypatch, incomplete, tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert Path(missing).name in error
    assert "Traceback" not in error
    assert not list((tmp_path / "out").rglob("captions.jsonl"))
