"""A copy of the tiny bundle with a detector graph beside the vision graph."""

import json
from pathlib import Path

import pytest

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.files import sha256_of
from tests.detection.tiny_detectors import write_yolox


@pytest.fixture
def bundle_with_detector(bundle_copy: Path) -> Path:
    """A copy of the tiny bundle with a YOLOX graph that finds coloured squares; the test may change it."""
    detector = write_yolox(bundle_copy / "detector.onnx")
    manifest = json.loads((bundle_copy / "manifest.json").read_text())
    manifest |= {"class_names": list(COCO_CLASSES), "detector": {"layout": "yolox", "minimum_score": 0.75}}
    manifest["files"][detector.name] = {"bytes": detector.stat().st_size, "sha256": sha256_of(detector)}
    (bundle_copy / "manifest.json").write_text(json.dumps(manifest))
    return bundle_copy
