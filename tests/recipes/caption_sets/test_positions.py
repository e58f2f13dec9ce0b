"""Positions of things from sentences and from answers."""

import pytest

from recipes.caption_sets.positions import (
    Position,
    all_positions,
    positions_in_answers,
    positions_in_sentence,
    sensible,
)
from recipes.rooms.questions import extract_facts
from training.data.tokenizer import tokenize

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
