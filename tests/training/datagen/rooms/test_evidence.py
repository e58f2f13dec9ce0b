"""Contents and words become evidence."""

import pytest

from tests.training.datagen.rooms.contents import LEFT, RIGHT, areas, objects
from training.datagen.rooms.evidence import collect_evidence
from training.datagen.teachers.image_content import ImageContent


def test_thing_in_a_strange_place_needs_both_teachers() -> None:
    bed = areas(bed=0.1)
    assert "bed" in collect_evidence("bedroom", ImageContent((), bed)).certain
    assert "bed" not in collect_evidence("kitchen", ImageContent((), bed)).nouns
    assert "bed" in collect_evidence("kitchen", ImageContent(objects(("bed", 0.45, LEFT)), bed)).certain


def test_a_box_has_one_name() -> None:
    both = objects(("television", 0.9, LEFT), ("laptop", 0.7, LEFT), ("book", 0.8, RIGHT))
    found = collect_evidence("office", ImageContent(both, ()))
    assert "television" in found.nouns
    assert "laptop" not in found.nouns
    assert "book" in found.nouns


@pytest.mark.parametrize(
    ("scene", "indoors"),
    [("kitchen", True), ("waiting room", True), ("bus interior", False), ("office building", False), ("street", False)],
)
def test_a_name_tells_what_is_inside(scene: str, indoors: bool) -> None:
    assert collect_evidence(scene, ImageContent((), ())).indoors is indoors


def test_a_place_without_a_telling_name_is_judged_by_what_is_seen() -> None:
    assert collect_evidence("misc", ImageContent((), areas(wall=0.4, ceiling=0.2))).indoors
    assert not collect_evidence("misc", ImageContent((), areas(building=0.4, sky=0.4))).indoors


def test_a_room_is_named_by_what_is_in_it() -> None:
    assert collect_evidence("", ImageContent((), ()), ["bed"]).rooms[0] == "bedroom"
    assert collect_evidence("", ImageContent((), ()), ["bed", "toilet"]).rooms[0] == "room"
    assert collect_evidence("", ImageContent((), ()), ["chair"]).rooms[0] == "room"
