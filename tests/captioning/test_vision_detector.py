"""A bundle whose vision graph computes tokens and detections in one pass."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from smart_caption_ros.captioning import Bundle, BundleError, Captioner
from smart_caption_ros.captioning.vision import Vision
from smart_caption_ros.engines import create_engine
from tests.detection.tiny_detectors import write_yolox
from tests.engines.small_graphs import changed_manifest
from tests.frames import blobs


@pytest.fixture(scope="module")
def captioner(detecting_bundle):
    return Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu", threads=1)


def test_boxes_are_in_pixels_of_a_frame_of_any_size(captioner):
    small = blobs(4)
    wide = np.repeat(np.repeat(small, 2, axis=0), 3, axis=1)
    for one, other in zip(captioner.caption(small).objects[:5], captioner.caption(wide).objects[:5], strict=True):
        np.testing.assert_allclose(np.array(one.box_xyxy) * [3, 2, 3, 2], other.box_xyxy, atol=1.0)
        assert one.class_name == other.class_name


def test_captions_are_the_same_with_and_without_the_detector(captioner, detecting_bundle):
    without = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu", threads=1, detector="none")
    image = blobs(4)
    assert without.detector is None
    assert without.caption(image).objects == ()
    assert without.caption(image).text == captioner.caption(image).text
    assert captioner.caption_batch([image]) == [captioner.caption(image).text]


def test_a_given_detector_takes_precedence_and_a_given_minimum_score_applies(detecting_bundle, tmp_path):
    given = Captioner.from_bundle(detecting_bundle, detector=write_yolox(tmp_path / "tiny.onnx"))
    assert given.detector.layout == "yolox"
    image = blobs(4)
    found = Captioner.from_bundle(detecting_bundle).caption(image).objects
    score = found[len(found) // 2].score
    fewer = Captioner.from_bundle(detecting_bundle, minimum_score=score).caption(image).objects
    assert fewer == tuple(detected for detected in found if detected.score >= score)


def test_a_manifest_that_promises_objects_of_a_graph_without_them_is_refused(bundle_copy):
    with changed_manifest(bundle_copy) as manifest:
        manifest |= {"class_names": ["cup"], "detector": {"layout": "vision", "minimum_score": 0.3}}
    with pytest.raises(BundleError, match="no output boxes"):
        Vision(Bundle.load(bundle_copy), create_engine("onnxruntime-cpu"))
    for place, value in (("columns", 3), ("before_grid", 10**30), ("width", 9)):
        with changed_manifest(bundle_copy) as manifest:
            manifest["tokens"][place] = value
        with pytest.raises(BundleError, match=r"gives tokens float32 \[\?, 49, 8\] instead of"):
            Vision(Bundle.load(bundle_copy), create_engine("onnxruntime-cpu"))


def test_classes_that_do_not_fit_the_graph_are_refused(detecting_bundle, tmp_path):
    copy = Path(shutil.copytree(detecting_bundle, tmp_path / "bundle"))
    with changed_manifest(copy) as manifest:
        manifest["class_names"] = ["cup", "chair"]
    with pytest.raises(BundleError, match="2 classes"):
        Captioner.from_bundle(copy).caption(blobs(0))
