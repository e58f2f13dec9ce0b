"""Every parameter of the nodes, declared and checked in one place.

A table a node: name, default, description, range and when it may change. The descriptors that
`ros2 param describe` shows, the checks of a new value, the parameter files in `config/` and the page in
`docs/` all follow these tables (a test compares them).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.engines import ENGINE_NAMES
from smart_caption_ros.nodes.detection_input import AUTO, DETECTION_TYPES


class Changes(enum.Enum):
    """When a parameter may be given another value."""

    ONLY_AT_START = "only at start"
    WHILE_UNCONFIGURED = "while unconfigured"
    ANY_TIME = "at any time"


_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a floating point number (with a decimal point)",
    str: "a string",
}


@dataclass(frozen=True)
class ParameterSpec:
    """One parameter.

    Attributes:
        name: its name; ends in the unit where it has one.
        default: its value when nobody says otherwise; its type is the parameter's type.
        description: one sentence for `ros2 param describe` and the documentation.
        changes: when it may be changed.
        minimum, maximum: the range of a number, both inclusive.
        choices: the allowed values of a string; None allows any.
    """

    name: str
    default: bool | int | float | str
    description: str
    changes: Changes
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] | None = None

    def descriptor(self) -> ParameterDescriptor:
        """What `ros2 param describe` shows, and the range that rclpy itself enforces."""
        descriptor = ParameterDescriptor(description=self.description, read_only=self.changes is Changes.ONLY_AT_START)
        constraints = [f"Changes {self.changes.value}."]
        if self.choices is not None:
            constraints.insert(0, f"One of: {', '.join(self.choices)}.")
        descriptor.additional_constraints = " ".join(constraints)
        if self.minimum is not None and self.maximum is not None:
            if isinstance(self.default, int):
                descriptor.integer_range = [IntegerRange(from_value=int(self.minimum), to_value=int(self.maximum))]
            else:
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(self.minimum), to_value=float(self.maximum))
                ]
        return descriptor

    def complaint(self, value: object) -> str | None:
        """What is wrong with `value`, in one sentence; None when nothing is."""
        if type(value) is not type(self.default):
            return f"{self.name} must be {_TYPE_NAMES[type(self.default)]}, not {value!r}"
        if self.choices is not None and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{self.name} must be a finite number, not {value}"
        if (
            self.minimum is not None
            and self.maximum is not None
            and isinstance(value, int | float)
            and not self.minimum <= value <= self.maximum
        ):
            return f"{self.name} must lie between {self.minimum:g} and {self.maximum:g}, not {value}"
        return None


CAPTION_NODE_PARAMETERS: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        "autostart",
        True,
        "Configure and activate the node when it starts; false leaves that to a lifecycle manager.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "bundle",
        "",
        "Folder of the bundle that holds the model; empty means the default bundle of this package.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "engine",
        "auto",
        "Engine that runs the model; auto takes the fastest that works here.",
        Changes.WHILE_UNCONFIGURED,
        choices=ENGINE_NAMES,
    ),
    ParameterSpec(
        "threads",
        0,
        "Threads that the engine may use on the processor; 0 leaves the number to the engine.",
        Changes.WHILE_UNCONFIGURED,
        minimum=0,
        maximum=256,
    ),
    ParameterSpec(
        "detector",
        "",
        "ONNX file of a detector that finds the objects; empty means the detections topic, else the bundle's own "
        "detector; none means the detections topic alone.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "detector_min_score",
        0.0,
        "Score below which objects of the own detector are left out; 0 means what the bundle says of its detector, "
        "and 0.35 for another.",
        Changes.WHILE_UNCONFIGURED,
        minimum=0.0,
        maximum=1.0,
    ),
    ParameterSpec(
        "detection_type",
        AUTO,
        "Type of the detections topic; auto takes that of whoever publishes there.",
        Changes.WHILE_UNCONFIGURED,
        choices=DETECTION_TYPES,
    ),
    ParameterSpec(
        "detection_classes",
        "",
        "File with the class names for class ids that are numbers on the detections topic, one a line; empty means "
        "COCO's 80.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "coverage",
        True,
        "Find the nouns of each caption and match them with the objects.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "spacy_pipeline",
        "",
        "Name or folder of the spaCy pipeline that finds the nouns; empty means the one in this package.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "word_vectors",
        "",
        "GloVe text file that says how similar nouns and classes are; empty means the table in this package.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "synonyms",
        "",
        "List of synonyms as published with CHAIR, whose words then count as their class; empty means none.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "image_transport",
        "auto",
        "Input to subscribe to: raw (image), compressed (image/compressed), or auto, which takes the raw "
        "topic unless only the compressed one has a publisher.",
        Changes.ANY_TIME,
        choices=("auto", "raw", "compressed"),
    ),
    ParameterSpec(
        "camera",
        "",
        "Name of the camera, copied into every caption; tells several cameras on one topic apart.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "max_age_s",
        1.0,
        "Age beyond which an image gets STATUS_STALE and no text [s]; 0 captions images of any age.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=3600.0,
    ),
    ParameterSpec(
        "min_confidence",
        0.0,
        "Confidence below which a caption gets STATUS_LOW_CONFIDENCE and is left out of the text topic.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=1.0,
    ),
    ParameterSpec(
        "prefer_detections",
        False,
        "Take objects from the detections topic even before the detector that `detector` names; the topic always comes "
        "before the bundle's own detector, which is asked where the topic has none for the image.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "detection_slop",
        0.1,
        "Longest time between an image and detections that are taken for it where none have its stamp [s]; 0 wants "
        "the same stamp.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=60.0,
    ),
    ParameterSpec(
        "detection_wait",
        0.0,
        "Longest wait for a detector that has not come to the image yet, while somebody publishes detections [s].",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=10.0,
    ),
    ParameterSpec(
        "image_timeout_s",
        5.0,
        "Time without an image after which the diagnostics say so [s].",
        Changes.ANY_TIME,
        minimum=0.1,
        maximum=3600.0,
    ),
    ParameterSpec(
        "diagnostics_period_s",
        1.0,
        "Time between two diagnostics messages [s].",
        Changes.ANY_TIME,
        minimum=0.1,
        maximum=60.0,
    ),
    ParameterSpec(
        "overlay_max_side_px",
        1280,
        "Longest side of the overlay image [pixel]; larger ones are scaled down, 0 keeps their size.",
        Changes.ANY_TIME,
        minimum=0,
        maximum=16384,
    ),
    ParameterSpec(
        "overlay_jpeg_quality",
        80,
        "JPEG quality of the compressed overlay image.",
        Changes.ANY_TIME,
        minimum=1,
        maximum=100,
    ),
)

CAMERA_NODE_PARAMETERS: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        "source",
        "sample:household",
        "What to publish: an image, a folder of images, sequences in ACVR's layout, a video file, a ROS 2 bag, the "
        "index of a webcam, or sample:household, the sequences in this package.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "every",
        1,
        "Publish every Nth frame of the source.",
        Changes.ONLY_AT_START,
        minimum=1,
        maximum=1_000_000,
    ),
    ParameterSpec(
        "publish_objects",
        False,
        "Publish what is known to be in each frame of a sequence on `detections`, with the header of its image.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "bag_topic",
        "",
        "Image topic to read from a bag; empty takes the bag's only one.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "rate_hz",
        2.0,
        "Images published a second; a webcam slower than this sets the pace itself.",
        Changes.ANY_TIME,
        minimum=0.01,
        maximum=240.0,
    ),
    ParameterSpec(
        "loop",
        True,
        "Start again at the end of the source; false ends the node there.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "max_frames",
        0,
        "Images after which the node ends, however long the source is; 0 sets no limit.",
        Changes.ONLY_AT_START,
        minimum=0,
        maximum=1_000_000_000,
    ),
    ParameterSpec(
        "frame_id",
        "camera",
        "Coordinate frame in the header of every image.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "reliable",
        False,
        "Offer reliable delivery (depth 10) instead of the best effort of a camera driver.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "wait_for_subscribers",
        0,
        "Subscribers to wait for before the first image.",
        Changes.ONLY_AT_START,
        minimum=0,
        maximum=1000,
    ),
    ParameterSpec(
        "wait_timeout_s",
        30.0,
        "Longest wait for those subscribers, and at the end for the delivery of reliable images [s].",
        Changes.ONLY_AT_START,
        minimum=0.0,
        maximum=3600.0,
    ),
)


class Parameters:
    """The parameters of one node: declared from its table, checked at every change, read as a snapshot.

    `values` is replaced as a whole at every change and never modified, so any thread may read it.
    """

    def __init__(
        self,
        node: Node,
        table: Sequence[ParameterSpec],
        *,
        is_configured: Callable[[], bool] = lambda: False,
        on_change: Callable[[set[str]], None] = lambda names: None,
    ) -> None:
        """Declares the whole table on `node`.

        Args:
            node: the node; its parameter overrides (files, `-p name:=value`) are taken into account.
            table: the parameters.
            is_configured: whether those that change only while unconfigured are fixed now.
            on_change: called with the names that changed, after the new values are in place.

        Raises:
            ValueError: a value from a file or the command line is wrong; one sentence for all of it.
        """
        self._specs = {spec.name: spec for spec in table}
        self._is_configured = is_configured
        self._on_change = on_change
        # Only `_parameter_overrides` tells what was given before it is declared: rclpy's own exceptions name
        # neither the range nor the remedy, and it passes over a misspelt name in silence.
        given = node._parameter_overrides
        for name in sorted(given.keys() - self._specs.keys() - {"use_sim_time"}):
            if not name.startswith("qos_overrides."):
                node.get_logger().warning(f"there is no parameter {name}: its value is not used")
        complaints = [c for s in table if s.name in given and (c := s.complaint(given[s.name].value))]
        if complaints:
            raise ValueError("parameter " + "; ".join(complaints))
        self._values: dict[str, Any] = {
            spec.name: node.declare_parameter(spec.name, spec.default, spec.descriptor()).value for spec in table
        }
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._take_over)

    @property
    def values(self) -> Mapping[str, Any]:
        """All values now, by name."""
        return MappingProxyType(self._values)

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuses a bad value with a reason; what others declared (use_sim_time, QoS) is not its business."""
        for parameter in parameters:
            spec = self._specs.get(parameter.name)
            if spec is None:
                continue
            complaint = spec.complaint(parameter.value)
            if complaint is None and spec.changes is Changes.WHILE_UNCONFIGURED and self._is_configured():
                complaint = f"{spec.name} changes only while the node is unconfigured: deactivate it and clean it up"
            if complaint is not None:
                return SetParametersResult(successful=False, reason=complaint)
        return SetParametersResult(successful=True)

    def _take_over(self, parameters: list[Parameter]) -> None:
        changed = {p.name: p.value for p in parameters if p.name in self._specs}
        if changed:
            self._values = {**self._values, **changed}
            self._on_change(set(changed))
