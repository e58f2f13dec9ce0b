import json
from pathlib import Path

import cv2
import numpy as np
from typer.testing import CliRunner

from benchmarks.household_realism import Labelled, found_objects, main, measure

CUP = np.array([10, 10, 30, 30], np.float32)


def test_object_counts_as_found_by_its_class_its_place_and_the_score() -> None:
    objects = [Labelled("cup", CUP), Labelled("television", CUP + 100), Labelled("couch", CUP + 200)]
    found = [("cup", 0.9, CUP), ("tvmonitor", 0.9, CUP + 101), ("sofa", 0.9, CUP + 199)]
    assert found_objects(objects, found, 0.35) == [True, True, True]
    objects = objects[:2]
    assert found_objects(objects, [("bowl", 0.9, CUP)], 0.35) == [False, False]
    assert found_objects(objects, [("cup", 0.3, CUP)], 0.35) == [False, False]
    assert found_objects(objects, [("cup", 0.9, CUP + 12)], 0.35) == [False, False]


def test_detection_counts_for_one_object_alone() -> None:
    assert sum(found_objects([Labelled("cup", CUP), Labelled("cup", CUP + 1)], [("cup", 0.9, CUP)], 0.35)) == 1


def test_recall_is_counted_by_class(tmp_path: Path) -> None:
    folder = tmp_path / "000000"
    folder.mkdir()
    cv2.imwrite(str(folder / "000000.jpg"), np.zeros((100, 100, 3), np.uint8))
    box = {"bounding_box": [10, 10, 29, 29], "mask_id": 1}
    small = {"class": "fork", "bounding_box": [1, 1, 3, 3], "mask_id": 3}
    labels = {
        "000000": {
            "_metadata": {},
            "000001": {"class": "cup", **box},
            "000002": {"class": "chair", **box},
            "000003": small,
        }
    }
    (folder / "labels.json").write_text(json.dumps(labels))
    result = measure(tmp_path, lambda image: [("cup", 0.9, CUP)], smallest=0.005)
    assert (result["frames"], result["objects"], result["recall_at_0.35"]) == (1, 2, 0.5)
    assert result["classes"]["cup"]["recall_at_0.35"] == 1
    assert result["classes"]["chair"]["recall_at_0.35"] == 0


def test_command_reports_what_a_real_detector_finds(tmp_path: Path, data_dir: Path) -> None:
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
    done = CliRunner().invoke(main, [str(tmp_path), "--detector", str(detector), "--json", str(output)])
    assert done.exit_code == 0, done.output
    assert json.loads(output.read_text())["classes"]["person"]["recall_at_0.35"] == 1
