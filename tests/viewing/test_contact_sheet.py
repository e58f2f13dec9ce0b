"""The sheet shows every picture, in order, in tidy rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.viewing import ContactSheet, contact_sheet

COLOURS = [(250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0), (0, 250, 250)]


def plain(number, height, width):
    return np.full((height, width, 3), COLOURS[number], np.uint8)


def extent(sheet, number):
    """Left, top, right, bottom of the pixels of a picture."""
    rows, columns = np.nonzero((sheet == COLOURS[number]).all(axis=2))
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


def test_pictures_of_one_size_lie_in_order_on_a_grid():
    sheet = contact_sheet([plain(number, 60, 100) for number in range(5)])
    boxes = [extent(sheet, number) for number in range(5)]
    assert sheet.shape == (2 * (60 + 12) + 12, 3 * (100 + 12) + 12, 3)
    assert [box[:2] for box in boxes] == [(12, 12), (124, 12), (236, 12), (12, 84), (124, 84)]
    assert {(right - left, bottom - top) for left, top, right, bottom in boxes} == {(100, 60)}


@settings(max_examples=30)
@given(
    sizes=st.lists(st.tuples(st.integers(20, 200), st.integers(20, 200)), min_size=1, max_size=5),
    columns=st.one_of(st.none(), st.integers(1, 6)),
)
def test_every_picture_is_shown_in_its_proportions_inside_the_margins(sizes, columns):
    sheet = contact_sheet([plain(number, *size) for number, size in enumerate(sizes)], columns)
    for number, (height, width) in enumerate(sizes):
        left, top, right, bottom = extent(sheet, number)
        assert left >= 12
        assert top >= 12
        assert right <= sheet.shape[1] - 12
        assert bottom <= sheet.shape[0] - 12
        # Both sides are rounded to whole pixels.
        assert abs((right - left) - (bottom - top) * width / height) <= 1 + 0.5 * width / height + 1e-9


def test_nothing_to_show_is_refused():
    with pytest.raises(ValueError, match="at least one picture"):
        contact_sheet([])


@pytest.mark.parametrize("count", [16, 17, 31, 32, 33, 1000])
def test_of_many_pictures_a_sheet_keeps_an_even_choice_that_is_never_more_than_its_limit(count):
    sheet = ContactSheet(limit=16)
    for index in range(count):
        sheet.add(index, np.full((8, 8, 3), index % 251, np.uint8))
        assert len(sheet) <= 16
    assert len(sheet) >= 8
    step = 1 << max(0, (count - 1).bit_length() - 4)
    assert len(sheet) == len(range(0, count, step))
