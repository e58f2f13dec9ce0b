"""Load what the caption node runs: captioner, noun coverage and the class names of the detections topic."""

import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.captioner import NO_DETECTOR
from smart_caption_ros.detection.class_names import COCO_CLASSES, normalise, read_class_names
from smart_caption_ros.grounding import NounCoverage, guide_words
from smart_caption_ros.grounding.objects_guide import BIAS
from smart_caption_ros.nodes.allocator import release_freed_memory
from smart_caption_ros.nodes.caption.parameters import COCO, ObjectSource, object_source
from smart_caption_ros.text import visible

LoadCaptioner = Callable[[Path | None, str, int | None, Path | None, float | None], Captioner]
"""Loads a captioner; takes bundle, engine, number of threads, detector and its minimum score as
:meth:`Captioner.from_bundle` does. The node reports the message of any exception as its failure."""

LoadCoverage = Callable[[Sequence[str]], NounCoverage]


@dataclass(frozen=True)
class Model:
    """The captioner of a configured node, its noun coverage, and where it takes objects from.

    Attributes:
        coverage: finds and matches nouns; None if it is off or could not be loaded.
        coverage_problem: why coverage could not be loaded; empty if it was, or is off.
        detection_classes: names of the numeric class ids on the detections topic, by id; empty if none are given.
        uses_topic: whether objects are taken from the detections topic.
        guided_by_topic: whether the objects of the detections topic guide the words of captions.
        coverage_lock: has to be held while coverage is used, which is not thread-safe.
    """

    captioner: Captioner
    coverage: NounCoverage | None
    coverage_problem: str = ""
    detection_classes: Mapping[int, str] = field(default_factory=dict)
    uses_topic: bool = True
    guided_by_topic: bool = False
    coverage_lock: threading.Lock = field(default_factory=threading.Lock)


def load_model(values: Mapping[str, Any], load_captioner: LoadCaptioner, load_coverage: LoadCoverage) -> Model:
    """Load what the parameters select, and warm the captioner up; engines raise exceptions of any type."""
    detection_classes: Sequence[str] = ()
    if values["detection_classes"].lower() == COCO:
        detection_classes = COCO_CLASSES
    elif values["detection_classes"]:
        listed = read_class_names(Path(values["detection_classes"]).expanduser())
        detection_classes = [normalise(visible(name)) for name in listed]
    source = object_source(values)
    captioner = load_captioner(
        Path(values["bundle"]).expanduser() if values["bundle"] else None,
        values["engine"],
        values["threads"] or None,
        _detector(source, values["detector"]),
        values["detector_min_score"] if values["detector_min_score"] >= 0 else None,
    )
    if captioner.detector is None and source is ObjectSource.BUNDLE:
        raise ValueError(f"objects_from is bundle, but the bundle {captioner.bundle.path} has no detector")
    guide = values["objects_guide"]
    guide_words(captioner, guide)
    captioner.warm_up()
    detector_classes = captioner.detector.class_names if captioner.detector else ()
    coverage, problem = None, ""
    if values["coverage"]:
        try:
            coverage = load_coverage((*detector_classes, *detection_classes))
        except Exception as error:  # spaCy may be missing, as it has no rosdep key; captions are useful without it
            problem = f"captions come without nouns and coverage: {error}"
    return Model(
        captioner,
        coverage,
        problem,
        dict(enumerate(detection_classes)),
        uses_topic=source in (ObjectSource.AUTO, ObjectSource.TOPIC),
        guided_by_topic=guide == BIAS,
    )


def _detector(source: ObjectSource, named: str) -> Path | None:
    """Return the argument `detector` of :meth:`Captioner.from_bundle`; None selects the bundle's own detector."""
    if source in (ObjectSource.TOPIC, ObjectSource.NONE):
        return Path(NO_DETECTOR)
    return Path(named).expanduser() if source is ObjectSource.DETECTOR else None


def load_coverage(class_names: Sequence[str]) -> NounCoverage:
    """Load noun coverage with the tables of this package; raises CoverageError if spaCy or a table is missing."""
    return NounCoverage.load(class_names=class_names)


def release_memory() -> None:
    """Free the memory of models that are no longer referenced, and return it to the system."""
    gc.collect()
    release_freed_memory()
