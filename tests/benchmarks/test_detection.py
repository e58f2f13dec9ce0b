"""The figures of the detection benchmark on boxes whose figures can be computed by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cv2
import pytest

from benchmarks.coco_annotations import household_annotations
from benchmarks.detection import LOWEST_SCORE, detect_all, main, open_detector
from benchmarks.detection_scores import (
    average_precision,
    compare_common_classes,
    precision_and_recall,
    precision_by_class,
)
from smart_caption_ros.captioning import Detector, DetectorError
from smart_caption_ros.sources.acvr import AcvrSequences
from tests.detection.tiny_detectors import GREEN, SIDE, squares, write_yolox
from tests.sources.acvr_sequence import write_rooms

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


def test_each_true_box_is_matched_once_and_detections_below_the_score_do_not_count(annotations: Path) -> None:
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


def test_a_missing_picture_is_named_in_the_error(annotations: Path, tmp_path: Path) -> None:
    detector = Detector.from_onnx(write_yolox(tmp_path / "d.onnx"), engine="onnxruntime-cpu", threads=1)
    with pytest.raises(OSError, match=r"cannot read .*1\.png"):
        detect_all(detector, annotations, tmp_path)


def test_a_detector_that_finds_nothing_has_a_precision_of_zero(annotations: Path) -> None:
    assert average_precision(annotations, []) == {"images": 2, "ap": 0.0, "ap50": 0.0}
    assert precision_by_class(annotations, []) == {"dog": 0.0}


def test_precision_by_class_leaves_out_classes_without_annotations(annotations: Path) -> None:
    objects = [found(1, [8, 8, 8, 8], 0.9), found(2, [32, 16, 16, 16], 0.7, CAT)]
    assert precision_by_class(annotations, objects) == {"dog": pytest.approx(0.5, abs=0.01)}


def test_detectors_are_compared_over_the_classes_that_all_know() -> None:
    precisions = {"teacher": {"dog": 0.8, "cat": 0.6, "tie": 0.2}, "own": {"dog": 0.4, "cat": 0.3, "tie": 0.0}}
    compared = compare_common_classes(precisions, {"dog", "cat", "bed"})
    assert compared["teacher"] == {"ap50": 0.7, "share": 1.0, "classes": {"dog": 0.8, "cat": 0.6}}
    assert compared["own"] == {"ap50": 0.35, "share": 0.5, "classes": {"dog": 0.4, "cat": 0.3}}


def test_household_frames_are_written_as_annotations(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_rooms(root)
    path = household_annotations(root, tmp_path)
    content = json.loads(path.read_text())
    names = {category["id"]: category["name"] for category in content["categories"]}
    frames = list(AcvrSequences(root).frames())
    assert len(content["images"]) == len(frames)
    wanted = [thing.class_name for frame in frames for thing in frame.objects]
    assert [names[annotation["category_id"]] for annotation in content["annotations"]] == wanted
    left, top, right, bottom = next(thing.box_xyxy for frame in frames for thing in frame.objects)
    assert content["annotations"][0]["bbox"] == [left, top, right - left, bottom - top]
    assert Path(content["images"][0]["file_name"]).is_file()


def test_the_command_reports_the_share_of_the_first_detectors_precision(
    annotations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for image, box in ((1, (8, 8, 16, 16)), (2, (32, 16, 48, 32))):
        cv2.imwrite(str(tmp_path / f"{image}.png"), squares(SIDE, SIDE, (GREEN, box)))
    paths = [str(write_yolox(tmp_path / name)) for name in ("teacher.onnx", "own.onnx")]
    output = tmp_path / "figures.json"
    options = ["--images", str(tmp_path), "--annotations", str(annotations), "--json", str(output)]
    monkeypatch.setattr(sys, "argv", ["detection", *paths, *options])
    assert main() == 0
    measured = json.loads(output.read_text())["detectors"]
    assert list(measured) == paths
    assert measured[paths[1]]["common"]["share"] == 1.0
    assert list(measured[paths[1]]["common"]["classes"]) == ["dog"]


def test_a_bundle_without_a_detector_is_refused(tiny_bundle: Path) -> None:
    with pytest.raises(DetectorError, match="no detector"):
        open_detector(tiny_bundle, 1)


@pytest.mark.long
def test_yolox_nano_has_the_precision_and_recall_that_were_measured_before(data_dir: Path) -> None:
    annotations = data_dir / "coco_mini" / "instances_val2017.json"
    detector = Detector.from_onnx(
        data_dir / "detectors" / "yolox_nano.onnx", engine="onnxruntime-cpu", threads=1, minimum_score=LOWEST_SCORE
    )
    objects = detect_all(detector, annotations, data_dir / "coco_mini" / "images")["objects"]
    assert average_precision(annotations, objects)["ap50"] == pytest.approx(0.49, abs=0.01)
    measured = precision_and_recall(annotations, objects, 0.35)
    assert measured["precision"] == pytest.approx(0.67, abs=0.03)
    assert measured["recall"] == pytest.approx(0.32, abs=0.02)
