"""The options of the demo, the frames that it publishes, its topics, and the arguments of its two nodes."""

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
        every: every Nth frame of the source; None takes all frames, but of sequences at most 16 that are spread over
            all of them.
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
        frames: name and address of each frame; empty for a source of unknown length, such as a live camera.
        every: every Nth frame of the source is published.
        knows_objects: whether the source has labelled objects.
        notes: sentences about frames that are left out.
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
        """Return the address of a frame, or its name if that is unknown."""
        return self.frames[index][1] if index < len(self.frames) else self.name(index)

    def caption_node_arguments(self) -> list[str]:
        """Return ROS arguments with which the caption node answers every frame, even on a slow machine."""
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
        """Return ROS arguments with which the camera node publishes all frames once, for both subscribers."""
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
