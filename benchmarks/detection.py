"""How well and how fast a detector finds the objects of COCO photographs.

    OMP_NUM_THREADS=1 python -m benchmarks.detection DETECTOR.onnx [--images FOLDER --annotations FILE] [--json FILE]

AP is the COCO toolkit's (pycocotools) over all scores from 0.01. Precision and recall are at one score and IoU 0.5,
each box of the ground truth (without crowds) matched once, best score first. Without a folder the photographs are the
validation part of coco_mini in the shared data.
"""

import argparse
import contextlib
import io
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from pycocotools.mask import iou

from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning import Detector, DetectorError, EngineError
from smart_caption_ros.class_names import normalise
from training.data.folder import data_folder

LOWEST_SCORE = 0.01


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__.splitlines()[0])
    parser.add_argument("detector", type=Path, help="ONNX file")
    parser.add_argument("--images", type=Path, help="folder of the photographs")
    parser.add_argument("--annotations", type=Path, help="their instances_*.json")
    parser.add_argument("--score", type=float, default=0.35, help="for precision and recall")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    coco_mini = data_folder() / "coco_mini"
    annotations = arguments.annotations or coco_mini / "instances_val2017.json"
    try:
        detector = Detector.from_onnx(
            arguments.detector, engine="onnxruntime-cpu", threads=arguments.threads, minimum_score=LOWEST_SCORE
        )
        found = detect_all(detector, annotations, arguments.images or coco_mini / "images")
    except (DetectorError, EngineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    result = {
        **describe_environment(seed=0),
        "detector": arguments.detector.name,
        "layout": detector.layout,
        "threads": arguments.threads,
        "annotations": annotations.name,
        **average_precision(annotations, found["objects"]),
        **precision_and_recall(annotations, found["objects"], arguments.score),
        "wall_ms_median": found["wall_ms_median"],
        "cpu_ms_median": found["cpu_ms_median"],
    }
    report(result, arguments.json)
    return 0


def detect_all(detector: Detector, annotations: Path, images: Path) -> dict[str, Any]:
    """Objects of all annotated photographs in COCO's format of results, and milliseconds a photograph.

    Raises:
        OSError: a file cannot be read.
    """
    content = json.loads(annotations.read_text(encoding="utf-8"))
    categories = {normalise(category["name"]): category["id"] for category in content["categories"]}
    objects, wall_ms, cpu_ms = [], [], []
    for image in content["images"]:
        image_bgr = cv2.imread(str(images / image["file_name"]))
        if image_bgr is None:
            raise OSError(f"cannot read {images / image['file_name']}")
        started, used = time.perf_counter(), time.process_time()
        detected = detector.detect(image_bgr.astype(np.uint8, copy=False))
        wall_ms.append((time.perf_counter() - started) * 1e3)
        cpu_ms.append((time.process_time() - used) * 1e3)
        for each in detected:
            if each.class_name in categories:
                left, top, right, bottom = each.box_xyxy
                objects.append(
                    {
                        "image_id": image["id"],
                        "category_id": categories[each.class_name],
                        "bbox": [left, top, right - left, bottom - top],
                        "score": each.score,
                    }
                )
    return {
        "objects": objects,
        "wall_ms_median": round(statistics.median(wall_ms), 2),
        "cpu_ms_median": round(statistics.median(cpu_ms), 2),
    }


def average_precision(annotations: Path, objects: list[dict[str, Any]]) -> dict[str, float]:
    """``images``, ``ap`` (IoU 0.50 to 0.95) and ``ap50`` by the COCO toolkit."""
    with contextlib.redirect_stdout(io.StringIO()):  # the toolkit is talkative
        truth = COCO(str(annotations))
        evaluation = COCOeval(truth, truth.loadRes(objects), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {
        "images": len(truth.imgs),
        "ap": round(float(evaluation.stats[0]), 4),
        "ap50": round(float(evaluation.stats[1]), 4),
    }


def precision_and_recall(annotations: Path, objects: list[dict[str, Any]], score: float) -> dict[str, float]:
    """``precision`` and ``recall`` of the objects from that score on, at IoU 0.5."""
    content = json.loads(annotations.read_text(encoding="utf-8"))
    truth: dict[tuple[int, int], list[list[float]]] = defaultdict(list)
    for each in content["annotations"]:
        if not each["iscrowd"]:
            truth[each["image_id"], each["category_id"]].append(each["bbox"])
    total, right, given = sum(map(len, truth.values())), 0, 0
    for each in sorted(objects, key=lambda each: -float(each["score"])):
        if each["score"] < score:
            break
        given += 1
        boxes = truth[each["image_id"], each["category_id"]]
        overlaps = iou([each["bbox"]], boxes, [0] * len(boxes)) if boxes else np.zeros((1, 0))
        if overlaps.size and overlaps.max() >= 0.5:
            boxes.pop(int(overlaps.argmax()))
            right += 1
    return {
        "score": score,
        "precision": round(right / given, 4) if given else 0.0,
        "recall": round(right / total, 4) if total else 0.0,
    }


if __name__ == "__main__":
    sys.exit(main())
