"""Bundles without a captioner, and captioners of the stored features of a named backbone."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from smart_caption_ros.captioning import Bundle, BundleError, Captioner
from smart_caption_ros.captioning.bundle import load_bundle
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vision import Vision
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.engines import create_engine
from tests.export.command import export
from tests.frames import blobs
from tests.tiny_backbones import save_backbone
from tests.tiny_model import tiny_smart
from tests.training.commands import run_here
from training.data.feature_store import FeatureStore
from training.engine.trained_captioner import TrainedCaptioner
from training.features import main as features

WORDS = (*SPECIAL, *(f"w{index}" for index in range(4, 30)))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return save_backbone("clip", tmp_path_factory.mktemp("clip"))


@pytest.mark.parametrize(("precision", "storage"), [("float32", "int8"), ("float16", "float32"), ("int8", "float16")])
def test_a_vision_graph_alone_makes_the_tokens_of_the_backbone(clip, precision, storage, tmp_path):
    options = ("--vision-only", "--precision", precision, "--storage", storage, "--check-images", "3")
    done = export(clip, tmp_path / "bundle", *options)
    assert (done.status, done.err) == (0, "")
    assert "from torch's" in done.out
    bundle = load_bundle(tmp_path / "bundle")
    assert bundle.manifest["precision"] == {"stored": "float16", "computed": precision}
    assert (bundle.grid, bundle.tokens_before_grid, bundle.token_width) == ((2, 2), 1, 16)
    assert (bundle.preprocessing.interpolation, bundle.preprocessing.shorter_side) == ("bicubic", 36)
    vision = Vision(bundle, create_engine("onnxruntime-cpu"))
    assert vision.tokens(vision.preprocess(blobs(0, 50, 70))).shape == (1, 5, 16)
    with pytest.raises(BundleError, match="without a captioner"):
        Bundle.load(tmp_path / "bundle")


@pytest.mark.long
def test_a_captioner_of_stored_features_is_exported_with_the_backbone_that_made_them(clip, tmp_path):
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    for seed in range(3):
        cv2.imwrite(str(photographs / f"{seed}.png"), blobs(seed, 50, 70))
    store = tmp_path / "store"
    made = run_here(features, photographs, "-o", store, "--backbone", clip, data=tmp_path)
    assert made.returncode == 0, made.stderr
    stored = FeatureStore(store)
    assert stored.read("0.png").features.shape == (5, 16)

    captioner = tiny_smart(16, len(WORDS), d_ff=32, encoder_layers=1, decoder_layers=1, max_length=9)
    record = {
        "name": "by name", "experiment": {"data": {"max_words": 6}},
        "features": {"kind": "store", "source": stored.source},
    }  # fmt: skip
    search = Search(max_words=6)
    TrainedCaptioner("smart", captioner, None, Vocabulary(WORDS), record, search).save(tmp_path / "best.safetensors")
    options = ("--check-images", "4", "--storage", "float32", "--no-static")
    done = export(tmp_path / "best.safetensors", tmp_path / "bundle", *options)
    assert done.status == 0, done.err
    robot = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu")
    frame = cv2.imread(str(photographs / "1.png"))
    np.testing.assert_allclose(robot.visual_tokens(frame)[0], stored.read("1.png").features, atol=2e-2)
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert manifest["tokens"] == {"rows": 2, "columns": 2, "before_grid": 1, "width": 16}
    for word in robot.caption(frame).words:
        assert np.isnan(word.box_xyxy).all() or 0 <= word.box_xyxy[0] < word.box_xyxy[2] <= 70

    weights = Path(clip.removeprefix("hf/")) / "model.safetensors"
    kept = weights.read_bytes()
    try:
        save_backbone("git", weights.parent)
        done = export(tmp_path / "best.safetensors", tmp_path / "other")
        assert "has other weights" in done.err
    finally:
        save_backbone("clip", weights.parent)
        weights.write_bytes(kept)
