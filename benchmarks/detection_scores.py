"""Scores of detections: the COCO toolkit's average precision, and precision and recall at one score."""

import contextlib
import io
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from smart_caption_ros.detection.boxes import box_iou
from smart_caption_ros.detection.class_names import normalise
from training.data.json_files import read_json


def average_precision(annotations: Path, objects: list[dict[str, Any]]) -> dict[str, float]:
    """Compute ``images``, ``ap`` (IoU 0.50 to 0.95) and ``ap50`` with the COCO toolkit."""
    evaluation = _evaluation(annotations, objects)
    return {
        "images": len(evaluation.cocoGt.imgs),
        "ap": round(float(evaluation.stats[0]), 4),
        "ap50": round(float(evaluation.stats[1]), 4),
    }


def precision_by_class(annotations: Path, objects: list[dict[str, Any]]) -> dict[str, float]:
    """Compute the AP50 of each class with a box in the annotations, by its normalised name."""
    evaluation = _evaluation(annotations, objects)
    # (IoU thresholds, recalls, classes, sizes, numbers of detections); -1 for a class without boxes.
    values = evaluation.eval["precision"][0, :, :, 0, -1]
    names = [normalise(evaluation.cocoGt.cats[category]["name"]) for category in evaluation.params.catIds]
    return {name: round(float(of.mean()), 4) for name, of in zip(names, values.T, strict=True) if of.min() >= 0}


def _evaluation(annotations: Path, objects: list[dict[str, Any]]) -> COCOeval:
    with contextlib.redirect_stdout(io.StringIO()):  # the toolkit prints its progress
        truth = COCO(str(annotations))
        # The toolkit cannot read an empty list of results; an empty set of annotations is equivalent.
        found = truth.loadRes(objects) if objects else COCO()
        evaluation = COCOeval(truth, found, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def precision_and_recall(annotations: Path, objects: list[dict[str, Any]], score: float) -> dict[str, float]:
    """Compute ``precision`` and ``recall`` of the objects with at least that score, at IoU 0.5.

    Each box of the ground truth (without crowds) is matched once, highest score first.
    """
    content = read_json(annotations)
    truth: dict[tuple[int, int], list[list[float]]] = defaultdict(list)
    for annotation in content["annotations"]:
        if not annotation["iscrowd"]:
            truth[annotation["image_id"], annotation["category_id"]].append(annotation["bbox"])
    total, right, given = sum(map(len, truth.values())), 0, 0
    for detected in sorted(objects, key=lambda item: -float(item["score"])):
        if detected["score"] < score:
            break
        given += 1
        boxes = truth[detected["image_id"], detected["category_id"]]
        overlaps = box_iou(_xyxy([detected["bbox"]]), _xyxy(boxes))
        if overlaps.size and overlaps.max() >= 0.5:
            boxes.pop(int(overlaps.argmax()))
            right += 1
    return {
        "score": score,
        "precision": round(right / given, 4) if given else 0.0,
        "recall": round(right / total, 4) if total else 0.0,
    }


def _xyxy(boxes_xywh: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    boxes = np.array(boxes_xywh, np.float64).reshape(-1, 4)
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def compare_common_classes(
    precisions: Mapping[str, Mapping[str, float]], known: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Compare detectors over the classes that all of them have.

    Args:
        precisions: by detector, the AP50 of each class in the annotations.
        known: classes that all detectors have.

    Returns:
        By detector: ``ap50`` (mean over the classes), ``share`` (ratio to the first detector's) and ``classes``.
    """
    found: dict[str, dict[str, Any]] = {}
    first = None
    for name, values in precisions.items():
        classes = {name: value for name, value in values.items() if name in known}
        mean = statistics.fmean(classes.values()) if classes else 0.0
        first = mean if first is None else first
        share = round(mean / first, 4) if first else None
        found[name] = {"ap50": round(mean, 4), "share": share, "classes": classes}
    return found
