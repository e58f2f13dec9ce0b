"""Names of colours."""

import numpy as np
import pytest

from recipes.teachers.colours import colour_name


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
