"""Files of a caption set."""

import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from recipes.caption_sets.captions_file import (
    CaptionedImage,
    link_archive,
    with_few_uses,
    write_archive,
    write_captions,
)
from training.data.coco_photographs import CocoPhotographs
from training.errors import DataError

IMAGES = [
    CaptionedImage("1.jpg", ["a dog", "a red dog"], True, ["dog"]),
    CaptionedImage("2.jpg", ["A dog.", "two dogs"], False),
    CaptionedImage("3.jpg", ["a dog"], False),
]


def encoded(shade: int) -> bytes:
    return cv2.imencode(".png", np.full((60, 80, 3), shade, np.uint8))[1].tobytes()


def test_a_sentence_is_used_for_a_limited_number_of_photographs() -> None:
    assert [each.sentences for each in with_few_uses(IMAGES, 1)] == [["a dog", "a red dog"], ["two dogs"]]
    assert [each.image for each in with_few_uses(IMAGES, 3)] == ["1.jpg", "2.jpg", "3.jpg"]


def test_the_files_are_a_data_set_for_training(tmp_path: Path) -> None:
    write_captions(tmp_path, IMAGES)
    write_archive(tmp_path, [(f"{number}.jpg", encoded(50 * number)) for number in (1, 2, 3)])
    dataset = CocoPhotographs(tmp_path)
    assert dataset.split("train") == ["1.jpg", "2.jpg", "3.jpg"]
    assert dataset.captions["2.jpg"] == ("A dog.", "two dogs")
    read = dataset.read_images(["1.jpg", "3.jpg"])
    assert read.shape == (2, 224, 224, 3)
    assert abs(int(read[1].mean()) - 150) <= 2
    assert not list(tmp_path.glob("*.unfinished"))


def test_equal_photographs_give_equal_archives(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_archive(tmp_path / name, [("1.jpg", encoded(9))])
    first, second = ((tmp_path / name / "images_256.zip").read_bytes() for name in ("one", "two"))
    assert first == second


def test_photographs_of_the_data_are_linked_not_copied(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photographs.zip", "w") as archive:
        archive.writestr("1.jpg", encoded(7))
    for _ in range(2):
        link_archive(tmp_path / "set", tmp_path / "photographs.zip")
        assert (tmp_path / "set" / "images_256.zip").is_symlink()
    write_captions(tmp_path / "set", IMAGES[:1])
    CocoPhotographs(tmp_path / "set").check_photographs(["1.jpg"])


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"broken\.jpg"):
        write_archive(tmp_path, [("broken.jpg", b"nothing")])
    assert not list(tmp_path.iterdir())
