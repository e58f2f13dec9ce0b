"""The pool of people's captions has none of measured photographs."""

import shutil
from pathlib import Path

import pytest

from recipes.caption_sets.caption_texts import read_pool, read_position_sentences
from tests.recipes.caption_sets.small_caption_data import CAPTIONS, MEASURED, SENTENCES
from tests.recipes.rooms.small_rooms import WITHHELD
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
