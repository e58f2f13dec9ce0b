"""Captions from statements that were questions."""

import pytest

from recipes.caption_sets.coco_statements import captions_from_statements
from recipes.caption_sets.fluency import Fluency
from training.data.tokenizer import tokenize


class Lenient(Fluency):
    """Everything reads well."""

    def __init__(self) -> None:
        super().__init__([])

    def reads_well(self, words: object) -> bool:
        return True


def captions(*statements: str, fluency: Fluency | None = None) -> list[str]:
    return captions_from_statements(statements, fluency or Lenient(), "photograph 1")


def test_the_verb_agrees_with_its_subject() -> None:
    (caption,) = captions("four people is playing a game on the beach")
    assert caption in ("four people are playing a game on the beach", "four people playing a game on the beach")


def test_a_colour_joins_the_sentence_that_names_its_noun() -> None:
    found = captions("red bus", "a bus stands at the stop sign")
    assert "a red bus stands at the stop sign" in found
    assert captions("orange bus", "a bus stands at the stop sign")[-1].startswith("an orange bus")


def test_of_two_colours_none_is_taken() -> None:
    found = captions("red bus", "blue bus", "a bus stands at the stop sign")
    assert found[-1] == "a bus stands at the stop sign"


@pytest.mark.parametrize(
    "statement",
    [
        "what is the man doing on the street",
        "two elephants is the man leading through town",
        "glasses is the man wearing in the room",
        "red bus",
        "the photo shows a man",
    ],
)
def test_questions_and_fragments_are_dropped(statement: str) -> None:
    assert captions(statement) == []


def test_what_does_not_read_like_a_caption_is_dropped() -> None:
    fluency = Fluency([tokenize("a cat is on the grass")])
    assert captions("a cat is on the grass", "a grass is on the cat", fluency=fluency) == ["a cat is on the grass"]


def test_short_sentences_about_different_things_are_joined() -> None:
    found = captions("a truck stands at a gate", "two men eat their lunch")
    assert found[0] == "a truck stands at a gate and two men eat their lunch"


def test_the_same_photograph_gets_the_same_captions() -> None:
    statements = ("a dog is sitting on the porch", "a cat is sleeping under the chair")
    assert captions(*statements) == captions(*statements)
