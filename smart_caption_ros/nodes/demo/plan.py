"""The options of the demo, the frames that it publishes, its topics, and how its two nodes are started."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smart_caption_ros.files import config_file
from smart_caption_ros.sources import open_source

DEFAULT_SOURCE = "sample:household"
CAPTION_TOPIC, IMAGE_TOPIC, DETECTIONS_TOPIC = "/robot/caption", "/image", "/detections"

_SEQUENCE_FRAMES = 16


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo.

    Attributes:
        output: folder for captions.jsonl, overlays/ and contact_sheet.png; created if missing.
        every: every Nth frame of the source; None takes all, and of sequences as many as span all of them in 16
            frames or fewer.
    """

    source: str
    output: Path
    rate_hz: float = 1.0
    timeout_s: float = 120.0
    max_frames: int = 60
    every: int | None = None


@dataclass(frozen=True)
class DemoPlan:
    """What the demo publishes.

    Attributes:
        frames: name of each frame, and where it comes from; empty for a live camera, whose frames are not known before.
        every: every Nth frame of the source is published.
    """

    options: DemoOptions
    description: str
    frames: tuple[tuple[str, str], ...]
    every: int
    knows_objects: bool
    notes: tuple[str, ...] = ()

    def name(self, index: int) -> str:
        return self.frames[index][0] if index < len(self.frames) else f"frame {index}"

    def address(self, index: int) -> str:
        """Return where a frame comes from, or its name where that is unknown."""
        return self.frames[index][1] if index < len(self.frames) else self.name(index)

    def caption_node_arguments(self) -> list[str]:
        """Return ROS arguments with which the caption node answers every frame, however slow the machine is."""
        labelled_objects = [
            *("-p", "objects_from:=topic"),
            *("-p", "detection_slop_s:=0.0"),
            *("-p", "detection_wait_s:=5.0"),
            *("-p", f"qos_overrides.{DETECTIONS_TOPIC}.subscription.reliability:=reliable"),
        ]
        return [
            *("--params-file", str(config_file("caption.yaml"))),
            *("-p", "max_age_s:=0.0"),
            *("-p", f"qos_overrides.{IMAGE_TOPIC}.subscription.reliability:=reliable"),
            *("-p", f"qos_overrides.{IMAGE_TOPIC}.subscription.depth:=10"),
            *(labelled_objects if self.knows_objects else ()),
        ]

    def camera_node_arguments(self) -> list[str]:
        """Return ROS arguments with which the camera node publishes once, after both subscribers are there."""
        return [
            *("--params-file", str(config_file("camera.yaml"))),
            *("-p", f"source:={json.dumps(self.options.source)}"),  # quoted: YAML would read 0 as a number
            *("-p", f"rate_hz:={float(self.options.rate_hz)}"),
            *("-p", "loop:=false"),
            *("-p", f"every:={self.every}"),
            *("-p", f"publish_objects:={str(self.knows_objects).lower()}"),
            *("-p", f"qos_overrides.{IMAGE_TOPIC}.publisher.reliability:=reliable"),
            *("-p", f"qos_overrides.{IMAGE_TOPIC}.publisher.depth:=10"),
            *("-p", f"qos_overrides.{DETECTIONS_TOPIC}.publisher.reliability:=reliable"),
            *("-p", "wait_for_subscribers:=2"),
        ]


def plan_demo(options: DemoOptions, on_frame: Callable[[], None]) -> DemoPlan:
    """Read the names of the frames to publish; `on_frame` is called after each."""
    source = open_source(options.source)
    length, every = source.known_length, options.every
    if every is None:
        every = math.ceil(length / _SEQUENCE_FRAMES) if source.knows_objects and length else 1
    frames = []
    notes = []
    if length is not None:
        for frame in itertools.islice(source.every(every), options.max_frames):
            frames.append((frame.name, source.address_of(frame)))
            on_frame()
        selected = math.ceil(length / every)
        if every > 1:
            notes.append(f"{source.description}: the demo takes {selected} of {length} frames, one of {every}")
        if selected > options.max_frames:
            notes.append(f"{source.description}: the demo takes the first {options.max_frames} of {selected}")
    return DemoPlan(options, source.description, tuple(frames), every, source.knows_objects, tuple(notes))
