"""The node benchmark measures real processes."""

import cv2
import pytest

from smart_caption_ros.measuring.agreement import golden_frames

pytestmark = pytest.mark.needs_ros


@pytest.mark.long
def test_captions_latency_and_cpu_time_of_a_node_are_measured(tiny_bundle, tmp_path):
    from benchmarks.caption_listener import NodeSettings
    from benchmarks.node import measure_node

    for number, frame in enumerate(golden_frames(2, 64, 48)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), frame)
    settings = NodeSettings(tiny_bundle, engine="onnxruntime-cpu", threads=1)
    found = measure_node(tmp_path, 5.0, settings, 2.0)
    assert found["captions"] > 0
    assert found["not_ok"] == 0
    assert 0 < found["work_ms"]["median"] < found["latency_ms"]["p95"]
    assert found["cpu_ms_per_caption"] > 0
    assert found["images_without_caption"] >= 0
