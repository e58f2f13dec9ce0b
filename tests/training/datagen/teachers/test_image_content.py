"""Contents of real photographs by the real teacher networks."""

from pathlib import Path

import pytest

from training.datagen.rooms.photographs import RoomsData, decode_photograph
from training.datagen.teachers.image_content import ContentTeacher, read_area_names


@pytest.mark.needs_data
def test_real_teachers_see_a_bed_in_a_real_bedroom(data_dir: Path) -> None:
    data = RoomsData.open(data_dir)
    bedroom = next(each for each in data.photographs if each.id == "scenes-000144")
    seen = ContentTeacher(data_dir / "detectors").find(decode_photograph(*next(iter(data.encoded([bedroom])))))
    assert {"bed", "wall", "ceiling"} <= {area.name for area in seen.areas}


@pytest.mark.needs_data
def test_real_class_table_has_the_150_classes(data_dir: Path) -> None:
    names = read_area_names(data_dir / "detectors" / "ade20k_classes.txt")
    assert len(names) == 150
    assert names[0] == "wall"
    assert names[7] == "bed"
