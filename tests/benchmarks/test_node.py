"""The node benchmark measures real processes."""

from argparse import Namespace
from pathlib import Path

import cv2
import pytest

from smart_caption_ros.captioning.agreement import golden_frames

pytestmark = pytest.mark.needs_ros


def test_captions_latency_work_and_processor_time_of_a_node_are_counted(tiny_bundle: Path, tmp_path: Path) -> None:
    from benchmarks.node import measure_node

    for number, frame in enumerate(golden_frames(2, 64, 48)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), frame)
    arguments = Namespace(bundle=tiny_bundle, engine="onnxruntime-cpu", threads=1, seconds=3.0)
    found = measure_node(tmp_path, 5.0, arguments)
    assert found["captions"] > 0
    assert found["not_ok"] == 0
    assert 0 < found["work_ms"]["median"] < found["latency_ms"]["p95"]
    assert found["cpu_ms_per_caption"] > 0
