"""Photographs that the detector was not trained on."""

import json
from pathlib import Path

from recipes.detector_photographs import unseen_by_detector


def test_dev_photographs_of_val2017_are_those_that_the_detector_has_not_seen(tmp_path: Path) -> None:
    (tmp_path / "coco_val2017_captions").mkdir()
    (tmp_path / "coco_photographs").mkdir()
    val2017 = {"images": [{"id": number, "file_name": f"{number:012d}.jpg"} for number in (7, 9)], "annotations": []}
    (tmp_path / "coco_val2017_captions" / "captions_val2017.json").write_text(json.dumps(val2017))
    parts = {"COCO_val2014_000000000007.jpg": "dev", "COCO_val2014_000000000008.jpg": "dev",
             "COCO_train2014_000000000009.jpg": "train"}  # fmt: skip
    lines = [
        json.dumps({"image": image, "part": part, "indoor": True, "sentences": ["a room"]})
        for image, part in parts.items()
    ]
    (tmp_path / "coco_photographs" / "captions.jsonl").write_text("\n".join(lines))
    assert unseen_by_detector(tmp_path) == (["COCO_val2014_000000000007.jpg"], 2)
