"""An exported bundle whose vision graph detects objects: the same objects as torch."""

import numpy as np
import onnx
import pytest
import torch

from smart_caption_ros.captioning import Bundle, Captioner
from tests.export.command import export
from tests.frames import synthetic_images
from tests.tiny_model import tiny_trained
from training.engine.trained_captioner import TrainedCaptioner

pytestmark = pytest.mark.long

CLASSES = ("cup", "chair", "person")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A random captioner with a random detector that is sure of many things."""
    trained = tiny_trained(class_names=CLASSES)
    # Exporters leave out parameters that are zeros or equal to others, which those of a trained network are not.
    for parameter in trained.backbone.parameters():
        parameter.data += 1e-3 * torch.randn_like(parameter)
    path = tmp_path_factory.mktemp("detecting") / "best.safetensors"
    trained.save(path)
    return path


def exported(checkpoint, folder, *options):
    """Run the command and return what it printed."""
    done = export(checkpoint, folder, "--check-images", 3, "--no-static", "--max-words", 4, *options)
    assert done.status == 0, done.err
    return done.out


@pytest.fixture(scope="module")
def bundle(checkpoint):
    folder = checkpoint.parent / "bundle"
    assert "objects: class scores within" in exported(checkpoint, folder, "--detector-score", "0.2")
    return folder


@pytest.fixture(scope="module")
def captioner(bundle):
    return Captioner.from_bundle(bundle, engine="onnxruntime-cpu", threads=1)


def test_the_manifest_says_what_is_found_and_who_taught_it(bundle):
    loaded = Bundle.load(bundle)
    assert loaded.class_names == CLASSES
    assert loaded.manifest["detector"]["layout"] == "vision"
    assert loaded.manifest["detector"]["minimum_score"] == 0.2
    assert "YOLOX" in loaded.manifest["detector"]["boxes_by"][0]["name"]


def test_objects_are_those_of_torch_surest_first_and_inside_the_frame(captioner, checkpoint):
    from export.storage import round_to_float16

    trained = TrainedCaptioner.load(checkpoint)
    round_to_float16(trained.backbone)
    image = synthetic_images(1, 224, seed=4)
    with torch.inference_mode():
        found = trained.backbone.features(torch.from_numpy(image)).detections
    objects = captioner.caption(image[0]).objects
    assert objects
    best = found.class_scores[0]
    cell, class_id = divmod(int(best.argmax()), len(CLASSES))
    assert objects[0].class_name == CLASSES[class_id]
    assert objects[0].score == pytest.approx(float(best.max()), abs=1e-3)
    expected = found.boxes_xyxy[0, cell].clamp(0, 1).numpy() * 224
    np.testing.assert_allclose(objects[0].box_xyxy, expected, atol=0.1)
    assert [detected.score for detected in objects] == sorted((detected.score for detected in objects), reverse=True)
    for thing in objects:
        x1, y1, x2, y2 = thing.box_xyxy
        assert 0 <= x1 < x2 <= 224
        assert 0 <= y1 < y2 <= 224
        assert thing.score >= 0.2


def test_a_detector_may_be_left_out(checkpoint, tmp_path):
    exported(checkpoint, tmp_path / "bundle", "--no-detector")
    loaded = Bundle.load(tmp_path / "bundle")
    assert loaded.detector is None
    assert [output.name for output in onnx.load(str(tmp_path / "bundle" / "vision.onnx")).graph.output] == ["tokens"]


def test_training_may_begin_with_all_networks_of_such_a_bundle(bundle, checkpoint):
    from export.storage import round_to_float16
    from training.vision.released_weights import load_backbone

    trained = TrainedCaptioner.load(checkpoint).backbone
    round_to_float16(trained)
    begun = load_backbone(bundle)
    assert begun.options == trained.options
    image = torch.from_numpy(synthetic_images(1, 224))
    with torch.inference_mode():
        expected, found = trained.features(image), begun.features(image)
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-3, rtol=0)
    torch.testing.assert_close(found.detections.class_scores, expected.detections.class_scores, atol=1e-3, rtol=0)


def test_several_networks_of_a_bundle_leave_no_room_for_others(bundle, tmp_path, data_dir):
    from training.configs.schema import ExperimentConfig, PhaseConfig
    from training.data.flickr8k import Flickr8k
    from training.data.visual_inputs import open_visual_inputs
    from training.errors import ConfigError

    config = ExperimentConfig("small", [PhaseConfig("xe", 1, 1e-3)], backbone=str(bundle), yolox="yolox_nano.onnx")
    with pytest.raises(ConfigError, match="has several networks; leave out more_backbones and yolox"):
        open_visual_inputs(config, data_dir, Flickr8k().open(data_dir), {"train": [], "dev": []}, tmp_path)
