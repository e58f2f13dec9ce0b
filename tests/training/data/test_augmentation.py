"""Random views of photographs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.data.augmentation import random_view

SIDE = 224
"""Width and height of the photographs, pixels."""


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_view_enlarges_a_part_of_the_photograph(seed: int, flip: bool) -> None:
    columns, rows = np.meshgrid(np.arange(SIDE, dtype=np.uint8), np.arange(SIDE, dtype=np.uint8))
    image = np.stack([columns, rows, columns], axis=2)
    seen = random_view(image, flip, 0.7, np.random.default_rng(seed)).astype(int)
    assert seen.shape == image.shape
    across = seen[0, :, 0][::-1] if flip else seen[0, :, 0]
    for places in (across, seen[:, 0, 1]):
        assert (np.diff(places) >= 0).all(), "in their order"
        assert 0.7 * SIDE - 3 <= places[-1] - places[0] + 1 <= SIDE


def test_a_share_of_1_keeps_the_whole_photograph() -> None:
    image = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    np.testing.assert_array_equal(random_view(image, False, 1.0, np.random.default_rng(1)), image)
    np.testing.assert_array_equal(random_view(image, True, 1.0, np.random.default_rng(1)), image[:, ::-1])
