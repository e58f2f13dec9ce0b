"""Grid tokens pooled inside boxes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.data.region_tokens import pool_regions

GRID, WIDTH, HEIGHT = (3, 4), 80, 60
CELLS = np.arange(12, dtype=np.float32)[:, None]
"""Each token is the number of its cell; cells are 20 pixels wide and high."""


def pooled(*boxes: tuple[float, float, float, float]) -> list[float]:
    tokens, _ = pool_regions(CELLS, GRID, boxes, WIDTH, HEIGHT)
    return [round(float(token), 4) for token in tokens[:, 0]]


def test_the_first_token_is_the_mean_of_the_photograph_and_is_there_without_regions() -> None:
    tokens, boxes = pool_regions(CELLS, GRID, [], WIDTH, HEIGHT)
    assert tokens.tolist() == [[5.5]]
    assert boxes.tolist() == [[0, 0, WIDTH, HEIGHT]]


def test_cells_are_weighted_by_the_area_that_the_region_covers() -> None:
    assert pooled((20, 20, 40, 40), (0, 0, 40, 20), (10, 0, 25, 20))[1:] == [5, 0.5, round(0.25 / 0.75, 4)]
    assert pooled((65, 50, 66, 51))[1:] == [11]  # smaller than a cell


@given(st.floats(0, 78), st.floats(0, 58), st.floats(0.5, 80), st.floats(0.5, 60))
def test_a_pooled_token_is_the_mean_over_points_of_the_region(
    left: float, top: float, width: float, height: float
) -> None:
    box = (left, top, min(WIDTH, left + width), min(HEIGHT, top + height))
    fine = 40  # samples along each side of the box
    xs = np.linspace(box[0], box[2], fine, endpoint=False) + (box[2] - box[0]) / (2 * fine)
    ys = np.linspace(box[1], box[3], fine, endpoint=False) + (box[3] - box[1]) / (2 * fine)
    cells = (ys // 20).astype(int)[:, None] * 4 + (xs // 20).astype(int)[None]
    assert abs(pooled(box)[1] - cells.mean()) < 0.3
