"""Rooms are captioned from people's sentences and answers."""

from pathlib import Path

import pytest

from recipes.caption_sets.described_rooms import captions_of_rooms, read_spatial_sentences
from recipes.caption_sets.fluency import Fluency
from recipes.rooms.photographs import NYU, Photograph
from training.data.tokenizer import tokenize
from training.errors import DataError

PEOPLE = ["a room with a lamp on a table", "a lamp on a table in a room", "a lamp sitting on a table in a room"]


def test_every_photograph_has_the_captions_that_its_texts_allow(caption_data: Path) -> None:
    asked = Photograph(NYU, "image1.jpg", questions=(("what is on the table?", "lamp"),))
    unknown = Photograph(NYU, "image2.jpg")
    fluency = Fluency(map(tokenize, PEOPLE))
    first, second = captions_of_rooms(caption_data, [asked, unknown], fluency, {"lamp", "table", "room"})
    assert (first.image, first.indoor) == ("image1.jpg", True)
    assert first.sentences
    assert set(first.sentences) <= set(PEOPLE)
    assert (second.image, list(second.sentences)) == ("image2.jpg", [])


@pytest.mark.parametrize("entry", ['{"image": "image1.jpg"}', '{"image": "image1.jpg", "sentences": ["text"]}'])
def test_a_malformed_entry_is_named(tmp_path: Path, entry: str) -> None:
    (tmp_path / "said.jsonl").write_text(f"{entry}\n")
    with pytest.raises(DataError, match=r"said\.jsonl, entry 1: expected image and sentences"):
        read_spatial_sentences(tmp_path / "said.jsonl")
