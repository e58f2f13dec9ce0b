"""Contents that the teacher networks find in a photograph of the data."""

from pathlib import Path

import pytest

from recipes.rooms.photographs import RoomsData, decode_photograph
from recipes.teachers.image_content import ContentTeacher, read_area_names


@pytest.mark.needs_data
def test_the_teachers_find_the_bed_in_a_photograph_of_a_bedroom(data_dir: Path) -> None:
    data = RoomsData.open(data_dir)
    bedroom = next(each for each in data.photographs if each.id == "scenes-000144")
    content = ContentTeacher(data_dir / "detectors").find(decode_photograph(*next(iter(data.encoded([bedroom])))))
    assert {"bed", "wall", "ceiling"} <= {area.name for area in content.areas}


@pytest.mark.needs_data
def test_the_table_of_ade20k_has_150_classes_in_order(data_dir: Path) -> None:
    names = read_area_names(data_dir / "detectors" / "ade20k_classes.txt")
    assert len(names) == 150
    assert names[0] == "wall"
    assert names[7] == "bed"
