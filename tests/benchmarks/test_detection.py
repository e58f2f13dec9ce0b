"""The figures of the detection benchmark on boxes whose figures can be told by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import pytest

from benchmarks.detection import LOWEST_SCORE, average_precision, detect_all, precision_and_recall
from smart_caption_ros.captioning import Detector
from tests.tiny_detectors import GREEN, SIDE, squares, write_yolox

DOG, CAT = 18, 17


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    """A dog in the first picture; a dog, and a crowd of dogs, in the second."""
    boxes = [(1, [8, 8, 8, 8], 0), (2, [32, 16, 16, 16], 0), (2, [0, 0, 60, 60], 1)]
    content = {
        "images": [{"id": i, "file_name": f"{i}.png", "width": SIDE, "height": SIDE} for i in (1, 2)],
        "categories": [{"id": DOG, "name": "dog"}, {"id": CAT, "name": "cat"}],
        "annotations": [
            {"id": n, "image_id": image, "category_id": DOG, "bbox": box, "area": box[2] * box[3], "iscrowd": crowd}
            for n, (image, box, crowd) in enumerate(boxes, 1)
        ],
    }
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(content))
    return path


def found(image_id: int, box: list[float], score: float, category_id: int = DOG) -> dict[str, Any]:
    return {"image_id": image_id, "category_id": category_id, "bbox": box, "score": score}


def test_each_true_box_is_matched_once_and_what_is_below_the_score_does_not_count(annotations: Path) -> None:
    objects = [
        found(1, [8, 8, 8, 8], 0.9),
        found(1, [8, 8, 8, 7], 0.8),
        found(2, [32, 16, 16, 16], 0.7, CAT),
        found(2, [32, 16, 16, 16], 0.1),
    ]
    assert precision_and_recall(annotations, objects, 0.35) == {"score": 0.35, "precision": 0.3333, "recall": 0.5}
    assert precision_and_recall(annotations, objects, 0.05) == {"score": 0.05, "precision": 0.5, "recall": 1.0}


def test_a_perfect_detector_has_average_precision_one(annotations: Path) -> None:
    objects = [found(1, [8, 8, 8, 8], 0.9), found(2, [32, 16, 16, 16], 0.7)]
    assert average_precision(annotations, objects) == {"images": 2, "ap": 1.0, "ap50": 1.0}


def test_a_detector_is_run_on_every_picture(annotations: Path, tmp_path: Path) -> None:
    detector = Detector.from_onnx(
        write_yolox(tmp_path / "d.onnx"), engine="onnxruntime-cpu", threads=1, minimum_score=LOWEST_SCORE
    )
    for image, box in ((1, (8, 8, 16, 16)), (2, (32, 16, 48, 32))):
        cv2.imwrite(str(tmp_path / f"{image}.png"), squares(SIDE, SIDE, (GREEN, box)))
    result = detect_all(detector, annotations, tmp_path)
    assert precision_and_recall(annotations, result["objects"], 0.99)["recall"] == 1.0
    assert average_precision(annotations, result["objects"])["ap50"] > 0.9
    assert result["cpu_ms_median"] > 0


def test_a_missing_picture_is_named(annotations: Path, tmp_path: Path) -> None:
    detector = Detector.from_onnx(write_yolox(tmp_path / "d.onnx"), engine="onnxruntime-cpu", threads=1)
    with pytest.raises(OSError, match=r"cannot read .*1\.png"):
        detect_all(detector, annotations, tmp_path)
