"""Positions and captions of rooms from people's sentences and answers."""

from pathlib import Path

import pytest

from recipes.caption_sets.described_rooms import (
    MAX_CAPTIONS,
    MAX_WORDS,
    MIN_WORDS,
    Position,
    RoomWriter,
    all_positions,
    captions_of_rooms,
    positions_in_answers,
    positions_in_sentence,
    read_spatial_sentences,
    sensible,
)
from recipes.caption_sets.fluency import Fluency
from recipes.rooms.photographs import NYU, Photograph
from recipes.rooms.questions import Facts, extract_facts
from training.data.tokenizer import tokenize
from training.errors import DataError

KNOWN = frozenset(
    tokenize("lamp table toaster counter sink stove mirror wall chair bed book box small red clock door picture window")
)


@pytest.mark.parametrize(
    ("sentence", "position"),
    [
        ("The toaster is on the counter, to the right of the sink.",
         Position(("a toaster",), "", (("on", "a counter"), ("next to", "a sink")))),
        ("The small red lamp is sitting on top of the table.",
         Position(("a small red lamp",), "", (("on", "a table"),))),
        ("the mirror hangs on the wall", Position(("a mirror",), "hanging", (("on", "the wall"),))),
        ("The counter is located between the sink and the stove.",
         Position(("a counter",), "", (("between", "a sink and a stove"),))),
    ],
)  # fmt: skip
def test_a_sentence_tells_where_a_thing_is(sentence: str, position: Position) -> None:
    assert positions_in_sentence(sentence, KNOWN) == position


@pytest.mark.parametrize(
    "sentence",
    [
        "The lamp is red.",
        "It is on the table.",
        "The gizmo is on the table.",
        "The lamp is on the left of the other one.",
        "There is a lamp is red in front of the bed.",
    ],
)
def test_sentences_of_another_form_are_left_out(sentence: str) -> None:
    assert positions_in_sentence(sentence, KNOWN) is None


@pytest.mark.parametrize(
    ("things", "place", "sense"),
    [
        (("a book",), ("on", "a table"), True),
        (("a table",), ("on", "a chair"), False),
        (("a book",), ("on", "the ceiling"), False),
        (("a clock",), ("on", "the wall"), True),
        (("a lamp",), ("on", "a lamp"), False),
        (("a box",), ("in", "a wall"), False),
    ],
)
def test_places_where_a_thing_is_not_found_are_dropped(
    things: tuple[str, ...], place: tuple[str, str], sense: bool
) -> None:
    assert (sensible(Position(things, "", (place,))) is not None) == sense


def test_answers_tell_positions_too_and_sentences_come_first() -> None:
    facts = extract_facts([("what is on the table?", "lamp, book")], KNOWN)
    told = Position(("a lamp", "a book"), "", (("on", "a table"),))
    assert positions_in_answers(facts) == [told]
    found = all_positions(["The chair is next to the bed."], facts, KNOWN)
    assert found == [Position(("a chair",), "", (("next to", "a bed"),)), told]


FACTS = Facts(("bed", "lamp", "chair"), {"bed": "white"}, {"chair": 2}, ())
POSITIONS = [
    Position(("a lamp",), "sitting", (("on", "a table"), ("next to", "a bed"))),
    Position(("a picture",), "", (("on", "the wall"),)),
]


class Lenient(Fluency):
    """Everything reads well."""

    def __init__(self) -> None:
        super().__init__([])

    def reads_well(self, words: object) -> bool:
        return True


def captions(positions: list[Position], facts: Facts = FACTS, room: str = "bedroom", fluency: Fluency | None = None,
             seed: str = "image1.jpg") -> list[str]:  # fmt: skip
    return RoomWriter(facts, positions, room, fluency or Lenient(), seed).captions()


def test_captions_say_where_things_are_in_which_room() -> None:
    found = captions(POSITIONS)
    assert 2 <= len(found) <= MAX_CAPTIONS
    text = " / ".join(found)
    assert "lamp" in text
    assert "on the wall" in text
    assert "bedroom" in text
    assert all(MIN_WORDS <= len(tokenize(caption)) <= MAX_WORDS for caption in found)


def test_without_positions_large_things_are_listed_with_colour_and_number() -> None:
    found = captions([])
    assert found[0] == "a bedroom with a white bed and two chairs"


def test_only_what_reads_like_people_is_kept() -> None:
    fluency = Fluency([tokenize("a bedroom with a white bed and two chairs")])
    assert captions(POSITIONS, fluency=fluency) == ["a bedroom with a white bed and two chairs"]


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
