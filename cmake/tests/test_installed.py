"""Run by `colcon test` on the installed package, with Ubuntu's pytest: messages can be made and nodes imported."""

import importlib
import importlib.util

import pytest


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("msg", ["Caption", "DetectedObject", "DetectedObjectArray", "GroundedNoun", "Coverage"]),
        ("srv", ["DescribeImage", "DescribeLatest"]),
    ],
)
def test_messages_can_be_made(folder: str, names: list) -> None:  # type: ignore[type-arg]
    module = importlib.import_module(f"smart_caption_ros.{folder}")
    for name in names:
        interface = getattr(module, name)
        assert (interface if folder == "msg" else interface.Request)() is not None


@pytest.mark.parametrize("name", ["caption_command", "camera_command", "caption_log_command"])
def test_nodes_can_be_imported(name: str) -> None:
    if importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed")
    assert callable(importlib.import_module(f"smart_caption_ros.nodes.{name}").main)
