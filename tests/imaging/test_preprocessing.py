"""Frames as a vision graph takes them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.imaging.preprocessing import INTERPOLATIONS, Preprocessing
from tests.frames import blobs


@given(
    width=st.integers(1, 90), height=st.integers(1, 90), interpolation=st.sampled_from(INTERPOLATIONS),
    shorter=st.sampled_from([None, 32, 37]),
)  # fmt: skip
def test_every_frame_gets_the_size_and_the_region_lies_in_it(width, height, interpolation, shorter):
    preprocessing = Preprocessing(32, 24, interpolation, shorter)
    assert preprocessing.apply(blobs(0, height, width)).shape == (24, 32, 3)
    left, top, right, bottom = preprocessing.region(width, height)
    assert -1e-3 <= left < right <= width + 1e-3
    assert -1e-3 <= top < bottom <= height + 1e-3


def test_the_region_is_what_the_frame_shows():
    """The left half is black, the right half white: in the crop, the edge is where the region says."""
    frame = np.zeros((60, 100, 3), np.uint8)
    frame[:, 50:] = 255
    preprocessing = Preprocessing(32, 32, "bilinear", 40)
    left, _, right, _ = preprocessing.region(100, 60)
    white = float((preprocessing.apply(frame)[16, :, 0] > 127).mean())
    assert white == pytest.approx((right - 50) / (right - left), abs=1 / 32)


@pytest.mark.parametrize("shape", [(2, 9001), (9001, 2)])
def test_a_very_long_frame_is_cropped_without_resizing_all_of_it(shape):
    frame = blobs(0, *shape)
    tracemalloc.start()
    cropped = Preprocessing(32, 32, "bilinear", 32).apply(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cropped.shape == (32, 32, 3)
    assert peak < 1e6  # all of it, resized, has 9001 x 16 x 32 pixels, 14 MB


@pytest.mark.parametrize("wrong", [(0, 5), (5, 5, "nearest"), (8, 4, "area", 7)])
def test_impossible_preprocessing_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        Preprocessing(*wrong)
