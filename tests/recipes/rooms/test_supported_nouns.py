"""The table of nouns and classes agrees with the teacher networks."""

from pathlib import Path

import pytest

from recipes.rooms.supported_nouns import CLASSES_OF
from recipes.teachers.image_content import read_area_names
from smart_caption_ros.detection.class_names import COCO_CLASSES


@pytest.mark.needs_data
def test_all_classes_of_the_table_are_classes_of_the_teachers(data_dir: Path) -> None:
    of_segmenter = set(read_area_names(data_dir / "detectors" / "ade20k_classes.txt"))
    named = {name for classes in CLASSES_OF.values() for name in classes}
    assert {name for name in named if not name.startswith("@")} <= of_segmenter
    assert {name[1:] for name in named if name.startswith("@")} <= set(COCO_CLASSES)
