"""How real the rendered scenes look to a detector that has only ever seen photographs.

    python -m benchmarks.household_realism ROOT --detector yolox_nano.onnx --json household_realism.json

Runs YOLOX on the frames of ``python -m training.household`` and reports its recall per class: the share of the labelled
objects that it finds with an overlap (IoU) of at least 0.5. Objects whose box covers less than ``--smallest`` of the
frame are left out. The same detector finds 0.32 of the objects of COCO's own photographs at a score of 0.35.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import onnxruntime
import typer
from numpy.typing import NDArray

from benchmarks.environment import describe_environment, report
from smart_caption_ros.datasets.acvr import AcvrSequences, acvr_class
from smart_caption_ros.datasets.ground_truth import GroundTruthFrame
from smart_caption_ros.datasets.source import SourceError

OVERLAP = 0.5
SCORES = (0.35, 0.15)
"""Detections count from these scores on: a usual threshold, and a low one that shows what nearly counted."""

Boxes = NDArray[np.float32]
Detector = Callable[[NDArray[np.uint8]], list[tuple[str, float, Boxes]]]
"""A BGR frame's objects: class, score and box (left, top, right, bottom; exclusive)."""

main = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Labelled:
    """An object of the ground truth."""

    class_name: str
    box: Boxes
    """(4,) left, top, right, bottom; exclusive."""


def yolox(path: Path, class_names: list[str], threads: int) -> Detector:
    """A YOLOX graph (undecoded outputs at strides 8, 16 and 32) as a detector."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    side = int(entry.shape[2])
    grids, strides = [], []
    for stride in (8, 16, 32):
        cells = np.stack(np.meshgrid(np.arange(side // stride), np.arange(side // stride)), axis=2).reshape(-1, 2)
        grids.append(cells)
        strides.append(np.full((len(cells), 1), stride))
    grid, stride_of = np.concatenate(grids), np.concatenate(strides)

    def detect(image_bgr: NDArray[np.uint8]) -> list[tuple[str, float, Boxes]]:
        height, width = image_bgr.shape[:2]
        scale = side / max(height, width)
        padded = np.full((side, side, 3), 114, np.uint8)
        resized = cv2.resize(image_bgr, (round(width * scale), round(height * scale)))
        padded[: resized.shape[0], : resized.shape[1]] = resized
        raw = session.run(None, {entry.name: padded.transpose(2, 0, 1)[None].astype(np.float32)})[0][0]
        centres, sizes = (raw[:, :2] + grid) * stride_of, np.exp(raw[:, 2:4]) * stride_of
        boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=1) / scale
        scores = raw[:, 4:5] * raw[:, 5:]
        found = []
        for number in np.unique(scores.argmax(axis=1)[scores.max(axis=1) >= min(SCORES)]):
            chosen = np.flatnonzero(scores[:, number] >= min(SCORES))
            xywh = np.concatenate([boxes[chosen, :2], boxes[chosen, 2:] - boxes[chosen, :2]], axis=1)
            for i in np.ravel(cv2.dnn.NMSBoxes(xywh.tolist(), scores[chosen, number].tolist(), min(SCORES), 0.45)):
                place = chosen[int(i)]
                found.append((class_names[int(number)], float(scores[place, number]), boxes[place].astype(np.float32)))
        return found

    return detect


def labelled_objects(frame: GroundTruthFrame, smallest: float) -> list[Labelled]:
    """The frame's objects whose boxes cover at least a share of it."""
    boxes = [(thing.class_name, np.array(thing.box_xyxy, np.float32)) for thing in frame.objects]
    least = smallest * frame.width * frame.height
    return [Labelled(name, box) for name, box in boxes if (box[2] - box[0]) * (box[3] - box[1]) >= least]


def found_objects(objects: list[Labelled], detections: list[tuple[str, float, Boxes]], score: float) -> list[bool]:
    """Which objects a detection of their class overlaps enough; a detection counts for one object, the surest first."""
    found = [False] * len(objects)
    for name, sureness, box in sorted(detections, key=lambda detection: -detection[1]):
        if sureness < score:
            break
        class_name = acvr_class(name)
        overlaps = [
            intersection_over_union(box, thing.box) if thing.class_name == class_name and not found[i] else 0.0
            for i, thing in enumerate(objects)
        ]
        if overlaps and max(overlaps) >= OVERLAP:
            found[int(np.argmax(overlaps))] = True
    return found


def intersection_over_union(a: Boxes, b: Boxes) -> float:
    """Of two boxes."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0.0, float(width)) * max(0.0, float(height))
    areas = float((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]))
    return shared / (areas - shared)


def measure(root: Path, detect: Detector, smallest: float) -> dict[str, object]:
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
    detector: Annotated[
        Path, typer.Option(help="A YOLOX ONNX graph, its class names beside it in coco_classes.txt.", exists=True)
    ],
    output: Annotated[Path | None, typer.Option("--json", help="The JSON file to write.")] = None,
    smallest: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the frame that an object's box covers at least.")
    ] = 0.005,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
) -> None:
    """Measure, print and write."""
    names = (detector.parent / "coco_classes.txt").read_text(encoding="utf-8").split("\n")
    find = yolox(detector, [name.strip() for name in names if name.strip()], threads)
    try:
        report(measure(root, find, smallest), output)
    except SourceError as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    main()
