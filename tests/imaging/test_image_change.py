"""Noise and a little flicker are no change; an object that comes or goes is one, wherever it is."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.imaging.image_change import change_between, thumbnail
from smart_caption_ros.measuring.agreement import golden_frames

THRESHOLD = 10.0  # the node's default


def noisy(image_bgr, seed):
    noise = np.random.default_rng(seed).normal(0, 8, image_bgr.shape)
    return np.clip(image_bgr + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("size", [(320, 240), (1280, 720)])
def test_noise_and_flicker_are_no_change(size):
    (frame,) = golden_frames(1, *size)
    before = thumbnail(noisy(frame, 1))
    assert change_between(before, before) == 0
    assert change_between(before, thumbnail(noisy(frame, 2))) < THRESHOLD / 3
    brighter = np.clip(frame * 1.03, 0, 255).astype(np.uint8)
    assert change_between(before, thumbnail(noisy(brighter, 3))) < THRESHOLD


@given(st.integers(0, 560), st.integers(0, 420))
def test_an_object_that_fills_a_fiftieth_of_the_image_is_a_change_wherever_it_is(left, top):
    before = np.full((480, 640, 3), 120, np.uint8)
    after = before.copy()
    cv2.rectangle(after, (left, top), (left + 79, top + 79), (200, 200, 200), -1)
    assert change_between(thumbnail(before), thumbnail(after)) > THRESHOLD


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 2000, 3), (48, 64, 3), (1081, 1923, 3)])
def test_images_of_any_size_are_compared(shape):
    black, white = np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8)
    assert thumbnail(white).shape == (48, 64)
    assert change_between(thumbnail(black), thumbnail(white)) == pytest.approx(255)
