"""People's captions that are read, and the files of a caption set."""

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from recipes.caption_sets.caption_texts import read_pool, read_position_sentences
from recipes.caption_sets.captions_file import (
    CaptionedImage,
    with_few_uses,
    write_archive,
    write_captions,
)
from tests.recipes.caption_sets.small_caption_data import CAPTIONS, MEASURED, SENTENCES
from tests.recipes.rooms.small_rooms import WITHHELD
from training.data.coco_photographs import CocoPhotographs
from training.data.tokenizer import tokenize
from training.errors import DataError


def test_the_pool_has_every_caption_once(caption_data: Path) -> None:
    pool = [" ".join(tokenize(text)) for text in read_pool(caption_data)]
    assert len(pool) == len(set(pool))
    assert {" ".join(tokenize(text)) for text in CAPTIONS} <= set(pool)
    assert "a man rides a bicycle" in pool


def test_captions_of_measured_photographs_are_left_out(caption_data: Path) -> None:
    pool = read_pool(caption_data)
    assert MEASURED not in pool  # by the number of its photograph
    assert "A dog sits on a couch." not in pool  # by its words, under the number of another photograph
    assert WITHHELD not in pool  # a benchmark's
    assert "A dog on a couch." not in pool  # of a photograph that may be in the dev split of the rooms


def test_sentences_about_positions_are_read(caption_data: Path) -> None:
    assert read_position_sentences(caption_data) == SENTENCES


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("coco_captions_pool.jsonl.gz", None, "cannot be read"),
        ("coco_captions_pool.jsonl.gz", b"no archive", "cannot be read"),
        ("flickr30k_multi30k_en.txt.gz", None, "cannot be read"),
    ],
)
def test_a_missing_or_damaged_file_is_named(
    caption_data: Path, tmp_path: Path, file: str, content: bytes | None, message: str
) -> None:
    broken = shutil.copytree(caption_data, tmp_path / "data")
    (broken / "caption_texts" / file).unlink()
    if content is not None:
        (broken / "caption_texts" / file).write_bytes(content)
    with pytest.raises(DataError, match=f"{file} {message}"):
        read_pool(broken)


IMAGES = [
    CaptionedImage("1.jpg", ["a dog", "a red dog"], True, ["dog"]),
    CaptionedImage("2.jpg", ["A dog.", "two dogs"], False),
    CaptionedImage("3.jpg", ["a dog"], False),
]


def encoded(shade: int) -> bytes:
    return cv2.imencode(".png", np.full((60, 80, 3), shade, np.uint8))[1].tobytes()


def test_a_sentence_is_used_for_a_limited_number_of_photographs() -> None:
    assert [captioned.sentences for captioned in with_few_uses(IMAGES, 1)] == [["a dog", "a red dog"], ["two dogs"]]
    assert [captioned.image for captioned in with_few_uses(IMAGES, 3)] == ["1.jpg", "2.jpg", "3.jpg"]


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


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"broken\.jpg"):
        write_archive(tmp_path, [("broken.jpg", b"nothing")])
    assert not list(tmp_path.iterdir())
