"""The benchmark of several cameras measures real processes."""

import pytest

from smart_caption_ros.measuring.agreement import golden_frames

pytestmark = pytest.mark.needs_ros


@pytest.mark.long
def test_memory_and_processor_time_of_a_node_with_two_cameras_are_measured(tiny_bundle, monkeypatch):
    from benchmarks import several_cameras

    monkeypatch.setattr(several_cameras, "WARM_UP_S", 0.0)
    arguments = {"bundle": tiny_bundle, "coverage": "false"}
    found = several_cameras.measure_layout([["front", "rear"]], golden_frames(2, 64, 48), 10.0, 1.0, arguments)
    assert found["resident_mb"] > found["private_mb"] > 20
    assert found["captions_per_second"] > 0
    assert found["cpu_ms_per_caption"] > 0


def test_the_second_camera_costs_the_median_difference_between_the_rounds():
    from benchmarks.several_cameras import second_camera_mb

    def runs(*resident_mb):
        return [dict.fromkeys(("resident_mb", "private_mb", "shared_mb", "shared_memory_mb"), mb) for mb in resident_mb]

    found = second_camera_mb({"one camera": runs(100, 110, 90), "two cameras": runs(120, 200, 115)})
    assert found["resident"] == 25
