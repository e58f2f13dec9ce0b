"""Copies of the tiny bundle to spoil, and one that carries a detector."""

import shutil
from pathlib import Path

import onnx
import pytest

from export.bundle import write_bundle
from smart_caption_ros.captioning import Bundle
from smart_caption_ros.detection.class_names import COCO_CLASSES
from tests.detection.tiny_detectors import write_yolox


@pytest.fixture
def bundle_copy(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A bundle that the test may damage."""
    return Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))


@pytest.fixture
def seeing_bundle(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A bundle with a detector that finds coloured squares; the test may damage it."""
    bundle = Bundle.load(tiny_bundle)
    facts = {key: value for key, value in bundle.manifest.items() if key != "files"}
    facts |= {"class_names": list(COCO_CLASSES), "detector": {"layout": "yolox", "minimum_score": 0.75}}
    graphs = {name: onnx.load(str(tiny_bundle / name)) for name in ("vision.onnx", "captioner.onnx")}
    graphs["detector.onnx"] = onnx.load(str(write_yolox(tmp_path / "tiny_yolox.onnx")))
    folder = tmp_path / "seeing_bundle"
    write_bundle(folder, graphs, bundle.vocabulary, facts, check=lambda bundle: None)
    return folder
