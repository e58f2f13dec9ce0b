"""Where the caption node takes the objects in an image from: the parameter `objects_from`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smart_caption_ros.captioning.captioner import NO_DETECTOR


class ObjectSource(enum.Enum):
    """The values of the parameter `objects_from`."""

    AUTO = "auto"
    DETECTOR = "detector"
    TOPIC = "topic"
    BUNDLE = "bundle"
    NONE = "none"


def chosen_source(values: Mapping[str, Any]) -> ObjectSource:
    """Return the source that the parameters select; with `auto` that is `detector` where a detector is named."""
    source = ObjectSource(values["objects_from"])
    return ObjectSource.DETECTOR if source is ObjectSource.AUTO and values["detector"] else source


def uses_topic(values: Mapping[str, Any]) -> bool:
    """Return whether the node takes objects from the detections topic."""
    return chosen_source(values) in (ObjectSource.AUTO, ObjectSource.TOPIC)


def missing_detector(values: Mapping[str, Any]) -> str | None:
    """Return one sentence if `objects_from` is detector but no detector is named, else None."""
    if chosen_source(values) is ObjectSource.DETECTOR and not values["detector"]:
        return "objects_from is detector: name an ONNX file in the parameter detector, in the same request or before"
    return None


def detector_to_load(values: Mapping[str, Any]) -> Path | None:
    """Return the `detector` argument of :meth:`Captioner.from_bundle`; see :func:`missing_detector`."""
    source = chosen_source(values)
    if source in (ObjectSource.TOPIC, ObjectSource.NONE):
        return Path(NO_DETECTOR)
    if source is not ObjectSource.DETECTOR:
        return None
    return Path(values["detector"]).expanduser()
