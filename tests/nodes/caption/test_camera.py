"""Images pass at no more than the maximum rate, and a camera of that rate loses none."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.nodes.caption.camera import RateLimit


def passed(times_s, max_rate_hz):
    limit = RateLimit()
    return [time_s for time_s in times_s if limit.passes(time_s, max_rate_hz)]


def test_an_irregular_camera_of_the_maximum_rate_loses_no_image():
    jitter = random.Random(0)
    times_s = [0.1 * number + jitter.uniform(-0.02, 0.02) for number in range(1000)]
    assert len(passed(times_s, 10.0)) > 980


@pytest.mark.parametrize(("camera_hz", "max_rate_hz"), [(30.0, 10.0), (30.0, 7.0), (30.0, 1.0), (240.0, 100.0)])
def test_a_faster_camera_is_captioned_at_the_maximum_rate(camera_hz, max_rate_hz):
    times_s = [number / camera_hz for number in range(round(60 * camera_hz))]
    assert len(passed(times_s, max_rate_hz)) == pytest.approx(60 * max_rate_hz, rel=0.02)


@given(st.lists(st.floats(0, 2), max_size=200), st.floats(0.1, 100))
def test_no_time_has_more_images_than_the_rate_allows(pauses_s, max_rate_hz):
    times_s = [sum(pauses_s[:number]) for number in range(len(pauses_s))]
    through = passed(times_s, max_rate_hz)
    for first in range(len(through)):
        for last in range(first, len(through)):
            assert last - first <= (through[last] - through[first]) * max_rate_hz + 1 + 1e-6
