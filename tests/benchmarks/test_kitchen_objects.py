"""The labels of the kitchen's frames are COCO instances inside the frames."""

from pathlib import Path

from smart_caption_ros.detection.class_names import COCO_CLASSES, normalise
from smart_caption_ros.evaluation.coco_instances import CocoInstances
from training.data.json_files import read_json

LABELS = Path(__file__).resolve().parents[2] / "benchmarks" / "kitchen_objects.json"


def test_every_box_is_in_a_listed_frame_and_of_a_class_of_coco() -> None:
    content = read_json(LABELS)
    sizes = {image["id"]: (image["width"], image["height"]) for image in content["images"]}
    names = {category["id"]: normalise(category["name"]) for category in content["categories"]}
    assert len(sizes) == 25
    assert set(names.values()) <= set(COCO_CLASSES)
    assert {annotation["image_id"] for annotation in content["annotations"]} == set(sizes)
    for annotation in content["annotations"]:
        left, top, width, height = annotation["bbox"]
        assert annotation["category_id"] in names
        assert 0 <= left < left + width <= sizes[annotation["image_id"]][0]
        assert 0 <= top < top + height <= sizes[annotation["image_id"]][1]


def test_the_benchmark_takes_all_frames_and_finds_no_fault(data_dir: Path) -> None:
    frames = CocoInstances([LABELS], data_dir / "kitchen_rgbd")
    assert len(list(frames.frames())) == 25
    assert not frames.issues
