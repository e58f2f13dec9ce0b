"""Captions by templates."""

from recipes.rooms.evidence import collect_evidence
from recipes.rooms.templates import template_captions
from recipes.teachers.image_content import ImageContent
from tests.recipes.rooms.contents import BEDROOM, LEFT, RIGHT, areas, objects


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
