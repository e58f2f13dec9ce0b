"""Reading of ``dataset_coco.json``, and refusal of malformed files."""

import json
from pathlib import Path
from typing import Any

import pytest

from training.data.karpathy import Karpathy
from training.errors import DataError


def image(number: int, split: str, **changes: Any) -> dict[str, Any]:
    return {
        "filepath": "val2014", "filename": f"COCO_val2014_{number:012}.jpg", "cocoid": number, "imgid": number - 1,
        "split": split, "sentids": [1, 2], **changes,
        "sentences": changes.get("sentences", [{"raw": "A dog. ", "tokens": ["a", "dog"]}, {"raw": "One dog"}]),
    }  # fmt: skip


def write(folder: Path, *images: Any) -> Path:
    path = folder / "dataset_coco.json"
    path.write_text(json.dumps({"images": images, "dataset": "coco"}))
    return path


def test_captions_files_and_splits_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, image(1, "test"), image(2, "restval"), image(3, "train"), image(4, "val"))
    read = Karpathy.load(path)
    assert read.captions["1"] == ["A dog.", "One dog"]
    assert read.files["1"] == "val2014/COCO_val2014_000000000001.jpg"
    assert read.split("test") == ["1"]
    assert read.split("val") == ["4"]
    assert read.split("train") == ["3", "2"]

    with pytest.raises(DataError, match="unknown split 'dev'"):
        read.split("dev")


@pytest.mark.parametrize(
    ("images", "complaint"),
    [
        ([image(1, "dev")], "image 1: split 'dev'"),
        ([image(1, "test"), image(1, "test")], "image 1: it is in the file twice"),
        ([image(1, "test", sentences=[])], "image 1: no captions"),
        ([image(1, "test", sentences=[{"raw": "A dog"}, {"raw": " "}])], "image 1, sentence 1: .* empty"),
        ([image(1, "test", cocoid=None)], "entry 0: no cocoid"),
        ([image(1, "test", filename=None)], "image 1: no filename"),
    ],
)
def test_wrong_images_are_refused_with_file_id_and_reason(tmp_path: Path, images: list[Any], complaint: str) -> None:
    with pytest.raises(DataError, match=rf"dataset_coco\.json, {complaint}"):
        Karpathy.load(write(tmp_path, *images))


@pytest.mark.parametrize(("text", "complaint"), [("{", "is not JSON"), ("[]", "list of images")])
def test_other_files_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "dataset_coco.json"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        Karpathy.load(path)
    with pytest.raises(DataError, match="no such file"):
        Karpathy.load(tmp_path / "nowhere.json")
