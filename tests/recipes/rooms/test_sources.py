"""Captions from descriptions and from templates."""

import pytest

from recipes.image_content import ImageContent
from recipes.rooms.descriptions import captions_from_descriptions
from recipes.rooms.evidence import collect_evidence
from recipes.rooms.sources import template_captions
from tests.recipes.rooms.contents import BEDROOM, KNOWN, LEFT, RIGHT, areas, objects


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


def test_templates_name_only_certain_things_and_depend_on_the_seed_alone() -> None:
    found = template_captions(BEDROOM, 3, "seed")
    assert found == template_captions(BEDROOM, 3, "seed")
    assert found
    for sentence in found:
        assert "bed" in sentence
        assert "table" not in sentence


def test_places_outside_and_places_with_few_things_get_no_caption() -> None:
    furnished = objects(("chair", 0.9, LEFT), ("bed", 0.9, RIGHT))
    assert template_captions(collect_evidence("street", ImageContent(furnished, ())), 3, "") == []
    assert template_captions(collect_evidence("misc", ImageContent((), areas(wall=0.5, floor=0.3))), 3, "") == []
