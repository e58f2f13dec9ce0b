"""How real the rendered scenes look to a detector that has only ever seen photographs.

    python -m benchmarks.household_realism ROOT --detector yolox_nano.onnx --json household_realism.json

Runs a detector on the frames of ``python -m training.household`` and reports its recall per class: the share of the
labelled objects that it finds with an overlap (IoU) of at least 0.5. Objects whose box covers less than ``--smallest``
of the frame are left out. YOLOX-nano finds 0.32 of the objects of COCO's own photographs at a score of 0.35.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.environment import describe_environment, report
from smart_caption_ros.detection.boxes import box_iou
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.sources.acvr import AcvrSequences, acvr_class
from smart_caption_ros.sources.ground_truth import GroundTruthFrame
from smart_caption_ros.sources.source import SourceError

OVERLAP = 0.5
SCORES = (0.35, 0.15)
"""Detections count from these scores on: a usual threshold, and a low one that shows what nearly counted."""

Boxes = NDArray[np.float32]
Found = tuple[str, float, Boxes]
"""A detection: class, score and box (left, top, right, bottom; exclusive)."""

main = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Labelled:
    """An object of the ground truth."""

    class_name: str
    box: Boxes
    """(4,) left, top, right, bottom; exclusive."""


def labelled_objects(frame: GroundTruthFrame, smallest: float) -> list[Labelled]:
    """The frame's objects whose boxes cover at least a share of it."""
    boxes = [(thing.class_name, np.array(thing.box_xyxy, np.float32)) for thing in frame.objects]
    least = smallest * frame.width * frame.height
    return [Labelled(name, box) for name, box in boxes if (box[2] - box[0]) * (box[3] - box[1]) >= least]


def found_objects(objects: list[Labelled], detections: list[Found], score: float) -> list[bool]:
    """Which objects a detection of their class overlaps enough; a detection counts for one object, the surest first."""
    found = [False] * len(objects)
    for name, sureness, box in sorted(detections, key=lambda detection: -detection[1]):
        if sureness < score:
            break
        class_name = acvr_class(name)
        overlaps = [
            float(box_iou(box, thing.box)[0, 0]) if thing.class_name == class_name and not found[i] else 0.0
            for i, thing in enumerate(objects)
        ]
        if overlaps and max(overlaps) >= OVERLAP:
            found[int(np.argmax(overlaps))] = True
    return found


def measure(root: Path, detect: Callable[[NDArray[np.uint8]], list[Found]], smallest: float) -> dict[str, object]:
    """Recall per class, and over all objects."""
    counts: dict[str, int] = defaultdict(int)
    hits: dict[str, dict[float, int]] = defaultdict(lambda: dict.fromkeys(SCORES, 0))
    frames = 0
    for frame in AcvrSequences(root).frames():
        frames += 1
        objects, detections = labelled_objects(frame, smallest), detect(frame.read_image())
        for thing in objects:
            counts[thing.class_name] += 1
        for score in SCORES:
            for thing, is_found in zip(objects, found_objects(objects, detections, score), strict=True):
                hits[thing.class_name][score] += is_found
    classes = {
        name: {"objects": count, **{f"recall_at_{score}": round(hits[name][score] / count, 3) for score in SCORES}}
        for name, count in sorted(counts.items(), key=lambda entry: -entry[1])
    }
    total = sum(counts.values())
    overall = {
        f"recall_at_{score}": round(sum(hits[name][score] for name in counts) / max(1, total), 3) for score in SCORES
    }
    return {
        "benchmark": "household_realism",
        "frames": frames,
        "objects": total,
        "smallest_box_share": smallest,
        "overlap": OVERLAP,
        **overall,
        "classes": classes,
        "environment": describe_environment(seed=0),
    }


@main.command()
def command(
    root: Annotated[Path, typer.Argument(help="The folder that `python -m training.household` wrote.", exists=True)],
    detector: Annotated[Path, typer.Option(help="An ONNX detector of COCO's classes.")],
    output: Annotated[Path | None, typer.Option("--json", help="The JSON file to write.")] = None,
    smallest: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the frame that an object's box covers at least.")
    ] = 0.005,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
) -> None:
    """Measure, print and write."""
    try:
        finder = Detector.from_onnx(detector, threads=threads, minimum_score=min(SCORES))

        def detect(image_bgr: NDArray[np.uint8]) -> list[Found]:
            return [
                (thing.class_name, thing.score, np.array(thing.box_xyxy, np.float32))
                for thing in finder.detect(image_bgr)
            ]

        report(measure(root, detect, smallest), output)
    except (DetectorError, EngineError, SourceError) as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    main()
