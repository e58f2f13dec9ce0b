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
