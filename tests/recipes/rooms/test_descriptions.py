"""Captions from people's sentences about details."""

import pytest

from recipes.rooms.descriptions import captions_from_descriptions
from tests.recipes.rooms.contents import KNOWN


@pytest.mark.parametrize(
    ("sentences", "caption"),
    [
        (["There is a sink under the window."], "a kitchen with a sink under the window"),
        (["The walls are white.", "There are two chairs."], "a kitchen with white walls and two chairs"),
        (["The room has a large blue rug"], "a kitchen with a large blue rug"),
        (["The lamp sits on a table."], "a kitchen with a lamp on a table"),
    ],
)
def test_human_sentences_are_joined_with_the_place(sentences: list[str], caption: str) -> None:
    words = KNOWN | {"chairs", "sits"}
    assert caption in captions_from_descriptions(sentences, ["kitchen", "room"], words)


@pytest.mark.parametrize("sentence", ["It looks like a kitchen.", "There is a snik under the window.", "I see a bed."])
def test_guesses_and_misspellings_are_dropped(sentence: str) -> None:
    assert captions_from_descriptions([sentence], ["kitchen"], KNOWN) == []
