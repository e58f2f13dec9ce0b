"""The parameters of the caption node."""

import enum
from collections.abc import Mapping
from typing import Any

from smart_caption_ros.engines import ENGINE_NAMES
from smart_caption_ros.grounding.objects_guide import AUTO as AUTO_GUIDE
from smart_caption_ros.grounding.objects_guide import GUIDE_CHOICES
from smart_caption_ros.nodes.parameters import Changes, ParameterSpec

COCO = "coco"
"""Value of `detection_classes` for the 80 classes of COCO."""


class Trigger(enum.Enum):
    """Values of the parameter `trigger`: which of the received images are captioned."""

    ALWAYS = "always"
    CHANGE = "change"
    REQUEST = "request"


class ObjectSource(enum.Enum):
    """Values of the parameter `objects_from`: where the objects in an image come from."""

    AUTO = "auto"
    DETECTOR = "detector"
    TOPIC = "topic"
    BUNDLE = "bundle"
    NONE = "none"


CAPTION_NODE_PARAMETERS: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        "autostart",
        True,
        "Configure and activate the node when it starts; false leaves that to a lifecycle manager.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "cameras",
        (),
        "Names of the cameras that the node captions in turn, each with its topics in a namespace of that name; empty "
        "for one camera without a name.",
        Changes.ONLY_AT_START,
        pattern=(
            "[A-Za-z][A-Za-z0-9_]{0,63}",
            "a name of 64 letters, digits and underscores at most that begins with a letter",
        ),
    ),
    ParameterSpec(
        "bundle",
        "",
        "Folder of the bundle to load; empty loads the default bundle of this package.",
        Changes.ONLY_AT_START,  # like all that name files, so that no other node can make this one read a file
    ),
    ParameterSpec(
        "engine",
        "auto",
        "Engine that runs the model; auto takes TensorRT where an engine was built for this bundle and device, else "
        "ONNX Runtime, on CUDA if it is there.",
        Changes.WHILE_UNCONFIGURED,
        choices=ENGINE_NAMES,
    ),
    ParameterSpec(
        "threads",
        0,
        "CPU threads of ONNX Runtime and of OpenCV; 0 leaves the number to them.",
        Changes.WHILE_UNCONFIGURED,
        limits=(0, 256),
    ),
    ParameterSpec(
        "objects_from",
        ObjectSource.AUTO.value,
        "Where objects come from: detector (the file in `detector`), topic (the detections topic), bundle (the "
        "bundle's own detector), none (no objects), or auto: the detector if one is named, else the topic and, for "
        "images without detections, the bundle's detector.",
        Changes.WHILE_UNCONFIGURED,
        choices=tuple(source.value for source in ObjectSource),
    ),
    ParameterSpec(
        "detector",
        "",
        "ONNX file of an object detector, for objects_from auto and detector; empty for none.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "detector_min_score",
        -1.0,
        "Minimum score of the objects that the node's detector finds, 0 to 1; a negative value uses the bundle's value "
        "for its own detector and 0.35 for another.",
        Changes.WHILE_UNCONFIGURED,
        limits=(-1.0, 1.0),
    ),
    ParameterSpec(
        "objects_guide",
        AUTO_GUIDE,
        "How the objects guide the words of a caption: bias (their words are preferred), off, or auto: bias by the "
        "objects of the node's own detector, if it has one and the bundle takes a guide; objects of a topic are not "
        "waited for.",
        Changes.WHILE_UNCONFIGURED,
        choices=GUIDE_CHOICES,
    ),
    ParameterSpec(
        "detection_classes",
        "",
        "Names of the numeric class ids on the detections topic: a file with one name a line, or coco for its 80 "
        "classes; empty takes them from vision_msgs/LabelInfo on label_info beside the topic, and leaves objects "
        "without a name out.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "coverage",
        True,
        "Find the nouns of each caption and match them with the detected objects.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "max_age_s",
        1.0,
        "Maximum age of an image [s]: older ones get STATUS_STALE, and those whose stamp lies that far in the future "
        "STATUS_ERROR, without text; 0 accepts any age.",
        Changes.ANY_TIME,
        limits=(0.0, 3600.0),
    ),
    ParameterSpec(
        "lazy",
        False,
        "Unsubscribe from the images and detections of a camera while nobody subscribes to its captions; a "
        "request wakes it.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "trigger",
        Trigger.ALWAYS.value,
        "Which images are captioned: always (all that the engine can), change (those that differ from the last one "
        "captioned), or request (only those of the services).",
        Changes.ANY_TIME,
        choices=tuple(trigger.value for trigger in Trigger),
    ),
    ParameterSpec(
        "max_rate_hz",
        0.0,
        "Maximum rate of the images of each camera that are captioned [Hz]: others are passed over; 0 sets no limit.",
        Changes.ANY_TIME,
        limits=(0.0, 240.0),
    ),
    ParameterSpec(
        "min_calibrated_confidence",
        0.0,
        "Minimum calibrated confidence, the share of such captions that are true: captions below it are refused, with "
        "STATUS_LOW_CONFIDENCE and without text; 0 accepts all.",
        Changes.ANY_TIME,
        limits=(0.0, 1.0),
    ),
    ParameterSpec(
        "list_objects",
        False,
        'Give a refused caption the plain list of the detected objects as its text: "a chair, a table and a person".',
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "text_on_change",
        False,
        "Publish a caption on the text topic only if its nouns differ from those of the text before.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "detection_slop_s",
        0.1,
        "Maximum time between an image and detections with another stamp [s]; 0 accepts the same stamp alone.",
        Changes.ANY_TIME,
        limits=(0.0, 60.0),
    ),
    ParameterSpec(
        "detection_wait_s",
        0.0,
        "Maximum time from the arrival of an image to that of its detections, while the detections topic has a "
        "publisher [s].",
        Changes.ANY_TIME,
        limits=(0.0, 10.0),
    ),
)


def object_source(values: Mapping[str, Any]) -> ObjectSource:
    """Return the source that the parameters select; `auto` selects `detector` if a detector is named."""
    source = ObjectSource(values["objects_from"])
    return ObjectSource.DETECTOR if source is ObjectSource.AUTO and values["detector"] else source


def missing_detector(values: Mapping[str, Any]) -> str | None:
    """Return one sentence if `objects_from` is detector but no detector is named, else None."""
    if object_source(values) is ObjectSource.DETECTOR and not values["detector"]:
        return "objects_from is detector: start the node with an ONNX file in the parameter detector"
    return None
