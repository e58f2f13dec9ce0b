"""Evidence from teachers and people, and the nouns that it supports."""

from pathlib import Path

import pytest

from recipes.image_content import ImageContent, read_area_names
from recipes.rooms.evidence import CLASSES_OF, collect_evidence
from smart_caption_ros.detection.class_names import COCO_CLASSES
from tests.recipes.rooms.contents import LEFT, RIGHT, areas, objects


def test_a_thing_in_an_unusual_room_needs_both_teachers() -> None:
    bed = areas(bed=0.1)
    assert "bed" in collect_evidence("bedroom", ImageContent((), bed)).certain
    assert "bed" not in collect_evidence("kitchen", ImageContent((), bed)).nouns
    assert "bed" in collect_evidence("kitchen", ImageContent(objects(("bed", 0.45, LEFT)), bed)).certain


def test_of_two_classes_in_one_box_the_higher_score_counts() -> None:
    both = objects(("television", 0.9, LEFT), ("laptop", 0.7, LEFT), ("book", 0.8, RIGHT))
    found = collect_evidence("office", ImageContent(both, ()))
    assert "television" in found.nouns
    assert "laptop" not in found.nouns
    assert "book" in found.nouns


@pytest.mark.parametrize(
    ("scene", "indoors"),
    [("kitchen", True), ("waiting room", True), ("bus interior", False), ("office building", False), ("street", False)],
)
def test_the_name_of_a_scene_decides_whether_it_is_inside(scene: str, indoors: bool) -> None:
    assert collect_evidence(scene, ImageContent((), ())).indoors is indoors


def test_a_scene_whose_name_does_not_decide_is_judged_by_its_areas() -> None:
    assert collect_evidence("misc", ImageContent((), areas(wall=0.4, ceiling=0.2))).indoors
    assert not collect_evidence("misc", ImageContent((), areas(building=0.4, sky=0.4))).indoors


def test_a_room_without_a_name_is_named_by_its_typical_things() -> None:
    assert collect_evidence("", ImageContent((), ()), ["bed"]).rooms[0] == "bedroom"
    assert collect_evidence("", ImageContent((), ()), ["bed", "toilet"]).rooms[0] == "room"
    assert collect_evidence("", ImageContent((), ()), ["chair"]).rooms[0] == "room"


@pytest.mark.needs_data
def test_all_classes_of_the_table_are_classes_of_the_teachers(data_dir: Path) -> None:
    of_segmenter = set(read_area_names(data_dir / "detectors" / "ade20k_classes.txt"))
    named = {name for classes in CLASSES_OF.values() for name in classes}
    assert {name for name in named if not name.startswith("@")} <= of_segmenter
    assert {name[1:] for name in named if name.startswith("@")} <= set(COCO_CLASSES)
