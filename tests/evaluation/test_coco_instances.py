"""COCO's instances files: frames and boxes, and what can be amiss."""

import json
from collections import Counter

import cv2
import numpy as np
import pytest

from smart_caption_ros.evaluation.coco_instances import CocoInstances
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.ground_truth import DatasetIssue


def content():
    """Two images, given in the wrong order; a cup and a crowd on the first."""
    return {
        "images": [
            {"id": 8, "file_name": "000008.jpg", "width": 40, "height": 30},
            {"id": 7, "file_name": "000007.png", "width": 20, "height": 10},
        ],
        "annotations": [
            {"id": 70, "image_id": 7, "category_id": 47, "bbox": [1, 2, 10, 5], "iscrowd": 0},
            {"id": 71, "image_id": 7, "category_id": 1, "bbox": [0.5, 0, 4.25, 10], "iscrowd": 1},
        ],
        "categories": [{"id": 47, "name": "cup"}, {"id": 1, "name": "person"}],
    }


def written(folder, instances, name="instances_small.json"):
    for image, size in (("000008.jpg", (30, 40, 3)), ("000007.png", (10, 20, 3)), ("000009.png", (10, 20, 3))):
        cv2.imwrite(str(folder / image), np.full(size, 127, np.uint8))
    (folder / name).write_text(json.dumps(instances))
    return folder / name


def test_images_come_by_their_ids_with_exclusive_boxes(tmp_path):
    data = CocoInstances([written(tmp_path, content())], tmp_path)
    first, second = data.frames()
    assert (first.name, first.width, first.height) == ("instances_small/7", 20, 10)
    assert [(thing.class_name, thing.instance_id, thing.box_xyxy) for thing in first.objects] == [
        ("cup", 70, (1, 2, 11, 7)),
        ("person", 71, (0.5, 0, 4.75, 10)),
    ]
    assert first.objects[0].area_share == 0.25
    assert (second.frame, second.objects) == ("8", ())
    assert not data.issues


def test_what_is_amiss_is_left_out_and_counted(tmp_path):
    instances = content()
    instances["images"] += [
        {"id": 9, "file_name": "000009.png", "width": 99, "height": 10},
        {"id": 10, "file_name": "nowhere.png", "width": 20, "height": 10},
        {"id": 7, "file_name": "000007.png", "width": 20, "height": 10},
        {"id": 11},
        "000012.png",
    ]
    instances["annotations"] += [
        {"id": 72, "image_id": 7, "category_id": 99, "bbox": [1, 2, 10, 5]},
        {"id": 73, "image_id": 700, "category_id": 1, "bbox": [1, 2, 10, 5]},
        {"id": 74, "image_id": 7, "category_id": 1, "bbox": [1, 2, 10]},
        {"id": 75, "image_id": 7, "category_id": 1, "bbox": [30, 2, 10, 5]},
        {"id": 76, "image_id": [7], "category_id": 1, "bbox": [1, 2, 10, 5]},
        {"id": 77, "image_id": 7, "category_id": {}, "bbox": [1, 2, 10, 5]},
        {"id": 78, "image_id": 7, "category_id": 2, "bbox": [1, 2, 10, 5]},
        75,
    ]
    instances["categories"] += [{"id": 2, "name": " "}, {"id": [3], "name": "dog"}]
    data = CocoInstances([written(tmp_path, instances)], tmp_path)
    assert [len(frame.objects) for frame in data.frames()] == [2, 0]
    assert {name: issue["count"] for name, issue in data.issues.to_json().items()} == {
        DatasetIssue.MALFORMED_FRAME.value: 2,
        DatasetIssue.REPEATED_FRAME.value: 1,
        DatasetIssue.IMAGE_OF_ANOTHER_SIZE.value: 1,
        DatasetIssue.FRAME_WITHOUT_IMAGE.value: 1,
        DatasetIssue.UNKNOWN_CLASS.value: 2,
        DatasetIssue.OBJECT_WITHOUT_FRAME.value: 1,
        DatasetIssue.MALFORMED_OBJECT.value: 4,
        DatasetIssue.BOX_OUTSIDE.value: 1,
    }


@pytest.mark.parametrize("spelling", [str, float, "cvat-{}".format, int])
def test_ids_may_be_spelt_in_any_way_and_sizes_may_be_missing(tmp_path, spelling):
    instances = content()
    for kind, keys in (("images", ["id"]), ("annotations", ["id", "image_id", "category_id"]), ("categories", ["id"])):
        for entry in instances[kind]:
            entry.update({key: spelling(entry[key]) for key in keys})
    del instances["images"][0]["width"], instances["images"][0]["height"]
    instances["images"][1]["width"] = "20"
    data = CocoInstances([written(tmp_path, instances)], tmp_path)
    assert [[item.class_name for item in frame.objects] for frame in data.frames()] == [["cup", "person"], []]
    assert not data.issues


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "is no list of COCO instances: it must hold images, annotations and categories"),
        ('{"images": [], "annotations": []}', "is no list of COCO instances"),
        ('{"images": [], "annotations": [], "categories": []}', "no images are listed$"),
        (
            '{"images": [{"id": 1.5, "file_name": "a.png"}], "annotations": [], "categories": []}',
            r"no images are listed that can be used: frames whose record is malformed: 1 \(the first: .*image 1.5\)",
        ),
    ],
)
def test_files_that_are_no_instances_are_refused(tmp_path, text, sentence):
    (tmp_path / "instances.json").write_text(text)
    with pytest.raises(SourceError, match=sentence):
        CocoInstances([tmp_path / "instances.json"], tmp_path)


def test_coco_mini_is_read_as_pycocotools_reads_it(data_dir):
    from pycocotools.coco import COCO

    folder = data_dir / "coco_mini"
    reference = COCO(str(folder / "instances_val2017.json"))
    data = CocoInstances([folder / "instances_val2017.json"], folder / "images")
    frames = list(data.frames())
    assert not set(data.issues.to_json()) - {DatasetIssue.BOX_CLIPPED.value}
    assert [frame.image_path.name for frame in frames] == [
        reference.imgs[number]["file_name"] for number in sorted(reference.imgs)
    ]
    for frame, number in zip(frames, sorted(reference.imgs), strict=True):
        annotations = reference.loadAnns(reference.getAnnIds(imgIds=number))
        names = [reference.cats[annotation["category_id"]]["name"] for annotation in annotations]
        assert Counter(thing.class_name for thing in frame.objects) == Counter(names)
        shares = [
            annotation["bbox"][2] * annotation["bbox"][3] / (frame.width * frame.height) for annotation in annotations
        ]
        assert [thing.area_share for thing in frame.objects] == pytest.approx(shares, rel=1e-3)
