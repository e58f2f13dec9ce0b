"""Detail of an image: what shows nothing is told from photographs."""

import cv2
import numpy as np
import pytest

from smart_caption_ros.imaging.detail import MIN_DETAIL, detail_of
from smart_caption_ros.sources import FrameSource, open_source

HEIGHT, WIDTH = 480, 640


def photographs():
    pytest.importorskip("skimage.data", reason="needs scikit-image's photographs: the demo extra")
    source = open_source("sample:photographs")
    assert isinstance(source, FrameSource)
    return {frame.name: frame.image_bgr for frame in source}


def covered_lens(random):
    return random.normal(random.uniform(0, 12), random.uniform(0.5, 4), (HEIGHT, WIDTH, 3))


def blank_wall(random):
    light = np.linspace(0, random.uniform(-40, 40), WIDTH)[None, :, None] + random.uniform(170, 245, 3)
    return light + random.normal(0, random.uniform(0.5, 4), (HEIGHT, WIDTH, 3))


def noise(random):
    return random.integers(0, 256, (HEIGHT, WIDTH, 3))


@pytest.mark.parametrize("generated", [covered_lens, blank_wall, noise])
def test_an_image_that_shows_nothing_has_little_detail(generated):
    for seed in range(5):
        image = generated(np.random.default_rng(seed)).clip(0, 255).astype(np.uint8)
        assert detail_of(image) < MIN_DETAIL, seed


def test_of_the_sample_photographs_only_that_of_a_moving_camera_shows_no_detail():
    assert [name for name, image in photographs().items() if detail_of(image) < MIN_DETAIL] == ["clock_motion.png"]


@pytest.mark.parametrize("name", ["astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"])
def test_photographs_show_detail_at_any_size_and_heavily_blurred_ones_do_not(name):
    photograph = photographs()[name]
    small = cv2.resize(photograph, (160, 120), interpolation=cv2.INTER_AREA)
    assert detail_of(small) == pytest.approx(detail_of(photograph), rel=0.1)
    blurred = cv2.GaussianBlur(photograph, (0, 0), photograph.shape[1] / 16)
    assert detail_of(blurred) < MIN_DETAIL
