"""Measure how many objects of rendered scenes are found by a detector that was trained only on photographs.

    python -m benchmarks.household_realism ROOT --detector yolox_nano.onnx --json household_realism.json

The figure is recall by class on the frames of ``python -m simulation.household``: the share of the labelled objects
that a detection of their class overlaps with an IoU of at least 0.5. On COCO photographs the recall of YOLOX-nano at a
score of 0.35 is 0.32.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.environment import describe_environment, report
from smart_caption_ros.detection.boxes import DetectedObject, box_iou
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.sources.acvr import AcvrSequences, acvr_class
from smart_caption_ros.sources.source import GroundTruthObject, SourceError
from training.command_line import JsonOption, run_command

MINIMUM_IOU = 0.5
SCORES = (0.35, 0.15)
"""Lowest scores of detections that count: a usual threshold, and a low one that includes uncertain detections."""


def found_objects(
    objects: Sequence[GroundTruthObject], detections: Sequence[DetectedObject], score: float
) -> list[bool]:
    """Match detections greedily to objects of their class, the highest score first, each to one object.

    Args:
        objects: ground truth of a frame.
        detections: of the same frame.
        score: lowest score of a detection that counts.

    Returns:
        For each object whether a detection was matched to it.
    """
    found = [False] * len(objects)
    ious = box_iou(
        np.array([detection.box_xyxy for detection in detections]), np.array([thing.box_xyxy for thing in objects])
    )
    for index in sorted(range(len(detections)), key=lambda index: -detections[index].score):
        if detections[index].score < score:
            break
        class_name = acvr_class(detections[index].class_name)
        candidates = [
            iou if thing.class_name == class_name and not is_found else 0.0
            for thing, iou, is_found in zip(objects, ious[index], found, strict=True)
        ]
        if candidates and max(candidates) >= MINIMUM_IOU:
            found[int(np.argmax(candidates))] = True
    return found


def measure(
    root: Path, detect: Callable[[NDArray[np.uint8]], Sequence[DetectedObject]], smallest: float
) -> dict[str, object]:
    """Compute recall by class and over all objects.

    Args:
        root: folder of sequences in ACVR's layout.
        detect: detector of a BGR image (H, W, 3).
        smallest: share of the frame that an object's box must cover to count.

    Raises:
        SourceError: the sequences cannot be read.
    """
    counts: Counter[str] = Counter()
    hits = {score: Counter[str]() for score in SCORES}
    frames = 0
    for frame in AcvrSequences(root).frames():
        frames += 1
        objects = [thing for thing in frame.objects if thing.area_share >= smallest]
        detections = detect(frame.read_image())
        counts.update(thing.class_name for thing in objects)
        for score in SCORES:
            found = found_objects(objects, detections, score)
            hits[score].update(thing.class_name for thing, is_found in zip(objects, found, strict=True) if is_found)
    return {
        "benchmark": "household_realism",
        "frames": frames,
        "objects": counts.total(),
        "smallest_box_share": smallest,
        "overlap": MINIMUM_IOU,
        **{f"recall_at_{score}": round(hits[score].total() / max(1, counts.total()), 3) for score in SCORES},
        "classes": {
            name: {"objects": count, **{f"recall_at_{score}": round(hits[score][name] / count, 3) for score in SCORES}}
            for name, count in counts.most_common()
        },
        "environment": describe_environment(seed=0),
    }


def household_realism(
    root: Annotated[Path, typer.Argument(help="Folder that `python -m simulation.household` wrote.")],
    detector: Annotated[Path, typer.Option(help="ONNX detector of COCO's classes.")],
    output: JsonOption = None,
    smallest: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the frame that an object's box must cover to count.")
    ] = 0.005,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
) -> None:
    """Measure how many objects of rendered scenes a detector finds."""
    session = Detector.from_onnx(detector, threads=threads, minimum_score=min(SCORES))
    report(measure(root, session.detect, smallest), output)


def main() -> int:
    """Run the command and return its exit status."""
    errors = (DetectorError, EngineError, SourceError)
    return run_command(household_realism, "python -m benchmarks.household_realism", errors)


if __name__ == "__main__":
    sys.exit(main())
