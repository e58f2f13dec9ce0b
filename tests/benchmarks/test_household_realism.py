"""Recall of a detector on rendered frames."""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.household_realism import found_objects, main, measure
from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.sources.source import GroundTruthObject


def box(offset: float) -> tuple[float, float, float, float]:
    return (10 + offset, 10 + offset, 30 + offset, 30 + offset)


def known(class_name: str, offset: float = 0) -> GroundTruthObject:
    return GroundTruthObject(class_name, 1, box(offset), 0.04)


def detected(class_name: str, offset: float = 0, score: float = 0.9) -> DetectedObject:
    return DetectedObject(class_name, 0, score, box(offset))


def test_object_counts_as_found_by_its_class_its_place_and_the_score() -> None:
    objects = [known("cup"), known("television", 100), known("couch", 200)]
    found = [detected("cup"), detected("tvmonitor", 101), detected("sofa", 199)]
    assert found_objects(objects, found, 0.35) == [True, True, True]
    objects = objects[:2]
    assert found_objects(objects, [detected("bowl")], 0.35) == [False, False]
    assert found_objects(objects, [detected("cup", score=0.3)], 0.35) == [False, False]
    assert found_objects(objects, [detected("cup", 12)], 0.35) == [False, False]
    assert found_objects(objects, [], 0.35) == [False, False]
    assert found_objects([], found, 0.35) == []


def test_detection_is_matched_to_one_object_alone() -> None:
    assert sum(found_objects([known("cup"), known("cup", 1)], [detected("cup")], 0.35)) == 1


def test_recall_is_counted_by_class(tmp_path: Path) -> None:
    folder = tmp_path / "000000"
    folder.mkdir()
    cv2.imwrite(str(folder / "000000.jpg"), np.zeros((100, 100, 3), np.uint8))
    place = {"bounding_box": [10, 10, 29, 29], "mask_id": 1}
    small = {"class": "fork", "bounding_box": [1, 1, 3, 3], "mask_id": 3}
    labels = {
        "000000": {
            "_metadata": {},
            "000001": {"class": "cup", **place},
            "000002": {"class": "chair", **place},
            "000003": small,
        }
    }
    (folder / "labels.json").write_text(json.dumps(labels))
    result = measure(tmp_path, lambda image: [detected("cup")], smallest=0.005)
    assert (result["frames"], result["objects"], result["recall_at_0.35"]) == (1, 2, 0.5)
    assert result["classes"]["cup"]["recall_at_0.35"] == 1
    assert result["classes"]["chair"]["recall_at_0.35"] == 0


def test_command_reports_what_a_real_detector_finds(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coco = data_dir / "coco_mini"
    document = json.loads(next(coco.glob("instances_*val*.json")).read_text())
    people = next(category["id"] for category in document["categories"] if category["name"] == "person")
    alone = [a for a in document["annotations"] if a["category_id"] == people and not a.get("iscrowd")]
    large = max(alone, key=lambda annotation: annotation["area"])
    name = next(image["file_name"] for image in document["images"] if image["id"] == large["image_id"])
    folder = tmp_path / "000000"
    folder.mkdir()
    cv2.imwrite(str(folder / "000000.jpg"), cv2.imread(str(coco / "images" / name)))
    x, y, width, height = large["bbox"]
    person = {"class": "person", "mask_id": 1, "bounding_box": [x, y, x + width - 1, y + height - 1]}
    (folder / "labels.json").write_text(json.dumps({"000000": {"_metadata": {}, "000001": person}}))
    output, detector = tmp_path / "realism.json", data_dir / "detectors" / "yolox_nano.onnx"
    command = ["household_realism", str(tmp_path), "--detector", str(detector), "--json", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 0
    assert json.loads(output.read_text())["classes"]["person"]["recall_at_0.35"] == 1


def test_missing_detector_is_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["household_realism", str(tmp_path), "--detector", str(tmp_path / "no.onnx")])
    assert main() == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
