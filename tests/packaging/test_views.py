"""The views for Foxglove and RViz show topics and fields that exist.

The form of the layout is that of the layouts in foxglove/foxglove-sdk (python/foxglove-sdk-examples) and of
the types of panels in lichtblick-suite/lichtblick, which go on from the published source of Foxglove Studio.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = json.loads((ROOT / "config" / "foxglove" / "caption.json").read_text(encoding="utf-8"))
PANELS: dict[str, Any] = LAYOUT["configById"]
VIEW = yaml.safe_load((ROOT / "config" / "rviz" / "caption.rviz").read_text(encoding="utf-8"))["Visualization Manager"]

PANEL_TYPES = {"DiagnosticStatusPanel", "DiagnosticSummary", "Image", "Plot", "RawMessages", "Tab"}
PATH = re.compile(r"(?P<topic>/[\w/]+)(?P<fields>(?:\.\w+(?:\[[\d:]*\])?(?:\{\w+==[\w']+\})?)*)")
"""A message path: topic, fields, slices and filters; the part of Foxglove's grammar that the layout uses."""
ROW = re.compile(r"^\| `([\w/]+)` \| (\w+/\w+)(?:, [\w ]+)? \| (.+?) \|", re.MULTILINE)


def topics() -> dict[str, tuple[str, str]]:
    """Type and quality of service of the topics that the documentation lists, by the full name."""
    page = (ROOT / "docs" / "running_on_a_robot.md").read_text(encoding="utf-8")
    published = page.split("### Published topics")[1].split("###")[0]
    found = {f"/{name.lstrip('/')}": (kind, qos) for name, kind, qos in ROW.findall(published)}
    return {**found, "/image": ("sensor_msgs/Image", "best effort")}  # of the camera


TOPICS = topics()


def typestore() -> Any:
    store = get_typestore(Stores.ROS2_JAZZY)
    own: dict[str, Any] = {}
    for path in ROOT.glob("msg/*.msg"):
        own |= get_types_from_msg(path.read_text(encoding="utf-8"), f"smart_caption_ros/msg/{path.stem}")
    store.register(own)
    return store


STORE = typestore()


def type_of(kind: str, fields: str) -> str:
    """Follow the fields of a message path; return the type at its end, without the brackets of an array."""
    kind = f"{kind.split('/')[0]}/msg/{kind.split('/')[1]}"
    for name, filtered in re.findall(r"\.(\w+)(?:\[[\d:]*\])?(?:\{(\w+)==[\w']+\})?", fields):
        known = {field: _named(description) for field, description in STORE.fielddefs[kind][1]}
        assert name in known, f"{kind} has no field {name}"
        kind = known[name]
        if filtered:
            assert filtered in {field for field, _ in STORE.fielddefs[kind][1]}, f"{kind} has no field {filtered}"
    return kind


def _named(description: Any) -> str:
    """Return the type of a field from rosbags' description: (BASE, (name, size)), (NAME, name) or one of an element."""
    _, detail = description
    if isinstance(detail, str):
        return detail
    return detail[0] if isinstance(detail[0], str) else _named(detail[0])


def panels_of(layout: Any) -> Iterator[str]:
    """The panels of a layout: a tree of splits, whose leaves are ids."""
    if isinstance(layout, str):
        yield layout
        return
    assert layout["direction"] in ("row", "column")
    assert 0 < layout.get("splitPercentage", 50) < 100
    for side in ("first", "second"):
        yield from panels_of(layout[side])


def message_paths() -> list[str]:
    paths = [series["value"] for panel in PANELS.values() for series in panel.get("paths", [])]
    return [*paths, *(panel["topicPath"] for panel in PANELS.values() if "topicPath" in panel)]


def test_the_layout_shows_every_panel_once_and_no_other() -> None:
    shown = list(panels_of(LAYOUT["layout"]))
    shown += [each for panel in PANELS.values() for tab in panel.get("tabs", []) for each in panels_of(tab["layout"])]
    assert sorted(shown) == sorted(PANELS)
    assert {panel.split("!")[0] for panel in PANELS} == PANEL_TYPES
    assert {"globalVariables", "userNodes", "playbackConfig"} < set(LAYOUT)


@pytest.mark.parametrize("path", message_paths())
def test_every_message_path_ends_at_a_field(path: str) -> None:
    parsed = PATH.fullmatch(path)
    assert parsed is not None
    assert parsed["topic"] in TOPICS
    kind = type_of(TOPICS[parsed["topic"]][0], parsed["fields"])
    plotted = any(series["value"] == path for panel in PANELS.values() for series in panel.get("paths", []))
    assert not plotted or kind in ("float32", "uint32"), "a number"


def test_every_topic_of_a_panel_is_published() -> None:
    images = [panel["imageMode"] for panel in PANELS.values() if "imageMode" in panel]
    expected = {"sensor_msgs/Image", "sensor_msgs/CompressedImage"}
    assert {TOPICS[each["imageTopic"]][0] for each in images} <= expected
    annotations = {topic for each in images for topic in each.get("annotations", {})}
    assert {TOPICS[topic][0] for topic in annotations} == {
        "foxglove_msgs/ImageAnnotations",
        "visualization_msgs/ImageMarker",
    }
    diagnostics = {panel["topicToRender"] for panel in PANELS.values() if "topicToRender" in panel}
    assert {TOPICS[topic][0] for topic in diagnostics} == {"diagnostic_msgs/DiagnosticArray"}


def test_rviz_asks_for_the_quality_of_service_that_is_offered() -> None:
    displays = [display for display in VIEW["Displays"] if display["Class"] == "rviz_default_plugins/Image"]
    for display in displays:
        kind, qos = TOPICS[display["Topic"]["Value"]]
        assert kind == "sensor_msgs/Image"
        assert qos.startswith(display["Topic"]["Reliability Policy"].lower())
    assert displays[0]["Topic"]["Value"] == "/robot/caption/image"
    assert displays[0]["Enabled"]


def test_the_topics_that_the_documentation_lists_are_those_of_the_policy() -> None:
    """tests/system/test_security.py compares the policy with the running nodes."""
    policy = ElementTree.parse(ROOT / "config" / "sros2" / "policy.xml")
    allowed = {f"/{topic.text}" for rules in policy.iter("topics") if "publish" in rules.attrib for topic in rules}
    assert set(TOPICS) <= allowed


@pytest.mark.parametrize("path", ["/robot/caption.coverage{ok==true}.noun_coverage", "/robot/caption.timing.age_ms"])
def test_a_path_to_a_field_that_does_not_exist_is_found(path: str) -> None:
    parsed = PATH.fullmatch(path)
    assert parsed is not None
    with pytest.raises(AssertionError, match="has no field"):
        type_of("smart_caption_ros/Caption", parsed["fields"])
