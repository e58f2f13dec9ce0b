"""The views for Foxglove and RViz show topics that are published, and fields that the messages have."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = json.loads((ROOT / "config" / "foxglove" / "caption.json").read_text(encoding="utf-8"))
PANELS = list(LAYOUT["configById"].values())
VIEW = yaml.safe_load((ROOT / "config" / "rviz" / "caption.rviz").read_text(encoding="utf-8"))["Visualization Manager"]
POLICY = ElementTree.parse(ROOT / "config" / "sros2" / "policy.xml")
PUBLISHED = {f"/{topic.text}" for rules in POLICY.iter("topics") if "publish" in rules.attrib for topic in rules}
"""tests/system/test_security.py compares the policy with the running nodes."""
TYPES = {
    "/robot/caption": "smart_caption_ros/msg/Caption",
    "/robot/caption/text": "std_msgs/msg/String",
    "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
}
"""Types of the topics whose fields a view shows."""


def message_paths():
    paths = [series["value"] for panel in PANELS for series in panel.get("paths", [])]
    return [*paths, *(panel["topicPath"] for panel in PANELS if "topicPath" in panel)]


def type_at(path):
    """Follow a message path of Foxglove (topic, fields, slices and filters) and return the type at its end."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for file in ROOT.glob("msg/*.msg"):
        store.register(get_types_from_msg(file.read_text(encoding="utf-8"), f"smart_caption_ros/msg/{file.stem}"))
    topic, *fields = re.sub(r"\[[\d:]*\]", "", path).split(".")
    kind = TYPES[topic]
    for name, filtered in (re.fullmatch(r"(\w+)(?:\{(\w+)==.*\})?", field).groups() for field in fields):
        known = dict(store.fielddefs[kind][1])
        assert name in known, f"{kind} has no field {name}"
        _, kind = known[name]
        while not isinstance(kind, str):  # an array of a type, or a type with a size
            kind = kind[0] if isinstance(kind[0], str) else kind[0][1]
        assert not filtered or filtered in dict(store.fielddefs[kind][1]), f"{kind} has no field {filtered}"
    return kind


@pytest.mark.parametrize("path", message_paths())
def test_every_message_path_ends_at_a_field(path):
    kind = type_at(path)
    plotted = any(series["value"] == path for panel in PANELS for series in panel.get("paths", []))
    assert not plotted or kind in ("float32", "uint32"), "a number"


def test_every_topic_of_a_view_is_published():
    modes = [panel["imageMode"] for panel in PANELS if "imageMode" in panel]
    shown = {mode["imageTopic"] for mode in modes} | {topic for mode in modes for topic in mode.get("annotations", {})}
    shown |= {panel["topicToRender"] for panel in PANELS if "topicToRender" in panel}
    shown |= {display["Topic"]["Value"] for display in VIEW["Displays"] if "Topic" in display} | TYPES.keys()
    assert shown
    assert shown <= PUBLISHED | {"/image", "/image/compressed"}  # those two of the camera
