"""Contents of images and names of colours."""

from pathlib import Path

import numpy as np
import pytest

from recipes.image_content import ContentTeacher, colour_name, read_area_names
from recipes.rooms.photographs import RoomsData, decode_photograph


@pytest.mark.parametrize(
    ("bgr", "name"),
    [
        ((5, 5, 5), "black"),
        ((230, 230, 230), "white"),
        ((30, 30, 200), "red"),
        ((200, 60, 20), "blue"),
        ((30, 70, 110), "brown"),
    ],
)
def test_the_median_colour_is_named(bgr: tuple[int, int, int], name: str) -> None:
    assert colour_name(np.full((9, 3), bgr, np.uint8)) == name


@pytest.mark.needs_data
def test_the_teachers_find_the_bed_in_a_photograph_of_a_bedroom(data_dir: Path) -> None:
    data = RoomsData.open(data_dir)
    bedroom = next(photograph for photograph in data.photographs if photograph.id == "scenes-000144")
    content = ContentTeacher(data_dir / "detectors").find(decode_photograph(*next(iter(data.encoded([bedroom])))))
    assert {"bed", "wall", "ceiling"} <= {area.name for area in content.areas}


@pytest.mark.needs_data
def test_the_table_of_ade20k_has_150_classes_in_order(data_dir: Path) -> None:
    names = read_area_names(data_dir / "detectors" / "ade20k_classes.txt")
    assert len(names) == 150
    assert names[0] == "wall"
    assert names[7] == "bed"
