"""The parameters of the caption node."""

import enum
from collections.abc import Mapping
from typing import Any

from smart_caption_ros.engines import ENGINE_NAMES
from smart_caption_ros.grounding.objects_guide import AUTO as AUTO_GUIDE
from smart_caption_ros.grounding.objects_guide import GUIDE_CHOICES, STRENGTH
from smart_caption_ros.imaging.encoded_images import HIGHEST_MAX_PIXELS, MAX_PIXELS
from smart_caption_ros.nodes.caption.detection_input import AUTO, DETECTION_TYPES
from smart_caption_ros.nodes.parameters import ALLOW_FILE_CHANGES, Changes, ParameterSpec

COCO = "coco"
"""Value of `detection_classes` that stands for the 80 classes of COCO."""


class Trigger(enum.Enum):
    """The values of the parameter `trigger`: which of the images that arrive are captioned."""

    ALWAYS = "always"
    CHANGE = "change"
    REQUEST = "request"


class ObjectSource(enum.Enum):
    """The values of the parameter `objects_from`: where the objects in an image come from."""

    AUTO = "auto"
    DETECTOR = "detector"
    TOPIC = "topic"
    BUNDLE = "bundle"
    NONE = "none"


RENAMED_PARAMETERS = {
    "detection_slop": "detection_slop_s",
    "detection_wait": "detection_wait_s",
    "prefer_detections": "objects_from: use topic in place of true, and auto in place of false",
}
"""Parameter names of an earlier version."""

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
        "Names of several cameras that the node captions in turn, each with its topics in a namespace of that name; "
        "empty for one camera.",
        Changes.ONLY_AT_START,
        pattern=(
            "[A-Za-z][A-Za-z0-9_]{0,63}",
            "a name of 64 letters, digits and underscores at most that begins with a letter",
        ),
    ),
    ParameterSpec(
        ALLOW_FILE_CHANGES,
        False,
        "Let the parameters that name files change while the node is unconfigured; false fixes them at the start, so "
        "that no other node makes this one read files.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "bundle",
        "",
        "Folder of the bundle to load; empty loads the default bundle of this package.",
        Changes.WHILE_UNCONFIGURED,
        names_file=True,
    ),
    ParameterSpec(
        "engine",
        "auto",
        "Engine that runs the model; auto takes the fastest one that works on this machine.",
        Changes.WHILE_UNCONFIGURED,
        choices=ENGINE_NAMES,
    ),
    ParameterSpec(
        "threads",
        0,
        "CPU threads of ONNX Runtime and of OpenCV; 0 leaves the number to them.",
        Changes.WHILE_UNCONFIGURED,
        minimum=0,
        maximum=256,
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
        Changes.WHILE_UNCONFIGURED,
        names_file=True,
        refused={
            "none": "detector is now the path of a file alone: in place of none set objects_from to topic or none"
        },
    ),
    ParameterSpec(
        "detector_min_score",
        -1.0,
        "Minimum score of the objects that the node's detector finds, 0 to 1; a negative value uses the bundle's value "
        "for its own detector and 0.35 for another.",
        Changes.WHILE_UNCONFIGURED,
        minimum=-1.0,
        maximum=1.0,
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
        "guide_strength",
        STRENGTH,
        "Bias of the words of an object with score 1, for objects_guide [natural logarithm].",
        Changes.WHILE_UNCONFIGURED,
        minimum=0.0,
        maximum=100.0,
    ),
    ParameterSpec(
        "detection_type",
        AUTO,
        "Message type of the detections topic; auto takes the type that is published.",
        Changes.WHILE_UNCONFIGURED,
        choices=DETECTION_TYPES,
    ),
    ParameterSpec(
        "detection_classes",
        "",
        "Names of the numeric class ids on the detections topic: a file with one name a line, or coco for its 80 "
        "classes; empty takes them from vision_msgs/LabelInfo on label_info beside the topic, and leaves objects "
        "without a name out.",
        Changes.WHILE_UNCONFIGURED,
        names_file=True,
    ),
    ParameterSpec(
        "coverage",
        True,
        "Find the nouns of each caption and match them with the detected objects.",
        Changes.WHILE_UNCONFIGURED,
    ),
    ParameterSpec(
        "spacy_pipeline",
        "",
        "Name or folder of the spaCy pipeline that finds the nouns; empty uses the one in this package.",
        Changes.WHILE_UNCONFIGURED,
        names_file=True,
    ),
    ParameterSpec(
        "word_vectors",
        "",
        "GloVe text file with the word vectors that nouns and classes are compared by; empty uses the table in this "
        "package.",
        Changes.WHILE_UNCONFIGURED,
        names_file=True,
    ),
    ParameterSpec(
        "synonyms",
        "",
        "List of synonyms in the format published with CHAIR, each of which counts as its class; empty uses none.",
        Changes.WHILE_UNCONFIGURED,
        names_file=True,
    ),
    ParameterSpec(
        "bond_heartbeat_period_s",
        0.0,
        "Time between two heartbeats for a lifecycle manager that watches the node, as that of nav2 [s]; 0 sends none.",
        Changes.WHILE_UNCONFIGURED,
        minimum=0.0,
        maximum=10.0,
    ),
    ParameterSpec(
        "image_transport",
        "auto",
        "Image topic to subscribe to: raw (image), compressed (image/compressed), or auto (raw unless only the "
        "compressed topic has a publisher).",
        Changes.ANY_TIME,
        choices=("auto", "raw", "compressed"),
    ),
    ParameterSpec(
        "camera",
        "",
        "Name of the only camera, copied into every caption; empty with `cameras`, whose captions have their names.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "max_age_s",
        1.0,
        "Maximum age of an image [s]: older ones get STATUS_STALE, and those whose stamp lies that far in the future "
        "STATUS_ERROR, without text; 0 accepts any age.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=3600.0,
    ),
    ParameterSpec(
        "trigger",
        Trigger.ALWAYS.value,
        "Which images are captioned: always (all that the engine can), change (those that differ from the last one "
        "captioned, see `change_threshold`), or request (none but those of the services).",
        Changes.ANY_TIME,
        choices=tuple(trigger.value for trigger in Trigger),
    ),
    ParameterSpec(
        "change_threshold",
        10.0,
        "Minimum change that is captioned with `trigger` change: mean difference of the grey levels, 0 to 255, in the "
        "part of the image (8 x 6 parts) that differs most.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=255.0,
    ),
    ParameterSpec(
        "max_rate_hz",
        0.0,
        "Maximum rate of the images of each camera that are captioned [Hz]: others are passed over; 0 sets no limit.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=240.0,
    ),
    ParameterSpec(
        "max_image_megapixels",
        MAX_PIXELS / 1e6,
        "Maximum size of an image [million pixels]: larger ones are not decoded and get STATUS_ERROR.",
        Changes.ANY_TIME,
        minimum=0.01,
        maximum=HIGHEST_MAX_PIXELS / 1e6,
    ),
    ParameterSpec(
        "work_timeout_s",
        10.0,
        "Time of work on one image after which the diagnostics report ERROR [s].",
        Changes.ANY_TIME,
        minimum=0.1,
        maximum=3600.0,
    ),
    ParameterSpec(
        "min_confidence",
        0.0,
        "Minimum confidence: captions below it get STATUS_LOW_CONFIDENCE and are not published on the text topic.",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=1.0,
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
        minimum=0.0,
        maximum=60.0,
    ),
    ParameterSpec(
        "detection_wait_s",
        0.0,
        "Maximum time to wait for the detections of an image while the detections topic has a publisher [s].",
        Changes.ANY_TIME,
        minimum=0.0,
        maximum=10.0,
    ),
    ParameterSpec(
        "image_timeout_s",
        5.0,
        "Time without an image after which the diagnostics report ERROR [s].",
        Changes.ANY_TIME,
        minimum=0.1,
        maximum=3600.0,
    ),
    ParameterSpec(
        "diagnostics_period_s",
        1.0,
        "Period of the diagnostics messages [s].",
        Changes.ANY_TIME,
        minimum=0.1,
        maximum=60.0,
    ),
    ParameterSpec(
        "overlay_max_side_px",
        1280,
        "Maximum length of the longer side of the overlay [pixel]: larger ones are scaled down; 0 keeps the size.",
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


def object_source(values: Mapping[str, Any]) -> ObjectSource:
    """Return the source that the parameters select; with `auto` that is `detector` where a detector is named."""
    source = ObjectSource(values["objects_from"])
    return ObjectSource.DETECTOR if source is ObjectSource.AUTO and values["detector"] else source


def uses_topic(values: Mapping[str, Any]) -> bool:
    """Return whether the node takes objects from the detections topic."""
    return object_source(values) in (ObjectSource.AUTO, ObjectSource.TOPIC)


def missing_detector(values: Mapping[str, Any]) -> str | None:
    """Return one sentence if `objects_from` is detector but no detector is named, else None."""
    if object_source(values) is ObjectSource.DETECTOR and not values["detector"]:
        return "objects_from is detector: name an ONNX file in the parameter detector, in the same request or before"
    return None


def unused_camera_name(values: Mapping[str, Any]) -> str | None:
    """Return what is wrong with `camera`: with `cameras` it would name none of them."""
    if values["cameras"] and values["camera"]:
        return "camera names the only camera of a node: leave it empty with cameras"
    return None


CAPTION_NODE_RULES = (missing_detector, unused_camera_name)
"""Judge the parameters of the caption node together."""
