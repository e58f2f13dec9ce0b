"""The detections topic is subscribed to with a type whose package is installed."""

from __future__ import annotations

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from smart_caption_ros.nodes import detection_input
from smart_caption_ros.nodes.detection_input import VISION_TYPE, check_type_is_installed

pytestmark = pytest.mark.needs_ros


def test_a_type_that_is_not_installed_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection_input, "Detection2DArray", None)
    with pytest.raises(ValueError, match="install ros-jazzy-vision-msgs, or publish smart_caption_ros/Detected"):
        check_type_is_installed(VISION_TYPE)
