"""Pictures of the attributions of words to regions, and of their attention to PMA-Net's prototypes."""

import cv2
import numpy as np
import pytest
import torch

from tests.tiny_model import TINY_SIZES, tiny_trained
from tests.training.commands import run_here
from tests.training.region_files import WIDTH, regions, write_npz
from training import explain
from training.engine.trained_captioner import TrainedCaptioner
from training.evaluation.word_pictures import draw_attributions
from training.models.pma_net import PmaNet, PmaNetConfig
from training.models.up_down import UpDown, UpDownConfig

EXPERIMENT = {"name": "any", "phases": [{"name": "any", "epochs": 1, "learning_rate": 0.0}]}


def saved(path, features=None):
    """Write a captioner that is quick to attribute, of photographs or of stored features."""
    torch.manual_seed(0)
    trained = tiny_trained()
    width = trained.backbone.spec.token_width if features is None else WIDTH
    captioner = UpDown(UpDownConfig(len(trained.vocabulary), width, **TINY_SIZES["up_down"])).eval()
    inputs = {"features": {"npz": str(features), "width": WIDTH}} if features else {"backbone": "any.onnx"}
    return write(path, trained, "up_down", captioner, inputs, None if features else trained.backbone, None)


def saved_pma_net(path, *, ready, image_size=None):
    torch.manual_seed(0)
    trained = tiny_trained()
    config = PmaNetConfig(len(trained.vocabulary), trained.backbone.spec.token_width, **TINY_SIZES["pma_net"])
    captioner = PmaNet(config).eval()
    for memory in captioner.memories():
        memory.ready.fill_(ready)
        memory.prototype_keys.normal_()
    return write(path, trained, "pma_net", captioner, {"backbone": "any.onnx"}, trained.backbone, image_size)


def write(path, trained, family, captioner, inputs, backbone, image_size):
    record = {"experiment": {**EXPERIMENT, "family": family, **inputs}}
    written = TrainedCaptioner(family, captioner, backbone, trained.vocabulary, record)
    written.set_image_size(image_size)
    written.save(path)
    return path


def photograph(path):
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 255, (90, 120, 3), np.uint8))
    return path


def run(*arguments):
    return run_here(explain.main, "--max-words", "4", "--beam-size", "2", *arguments)


def test_the_command_draws_each_word_of_a_photographs_caption(tmp_path):
    model = saved(tmp_path / "best.safetensors")
    done = run(model, photograph(tmp_path / "a.png"), "-o", tmp_path / "out.png")
    assert done.returncode == 0, done.stderr
    words = done.stdout.split("a.png: ")[1].split()[::2]
    picture = cv2.imread(str(tmp_path / "out.png"))
    assert words
    assert picture.shape[1] >= len(words) * 120
    whole = np.array([[0, 0, 1, 1]], np.float32)
    sheet = draw_attributions(["long"], torch.ones(1, 1), np.zeros((1, 3000, 3), np.uint8), whole)
    assert sheet.shape[1] < 3000


def test_a_captioner_of_stored_features_reads_those_of_the_photographs_number(tmp_path):
    features = write_npz(tmp_path, {"9": regions(3)})
    (tmp_path / "bundle").mkdir()
    saved(tmp_path / "bundle" / "captioner.safetensors", features)
    image, output = photograph(tmp_path / "COCO_val2014_000000000009.png"), tmp_path / "out.png"
    assert (run(tmp_path / "bundle", image, "-o", output).returncode, output.exists()) == (0, True)
    refused = run(tmp_path / "bundle", photograph(tmp_path / "b.png"), "-o", output)
    assert (refused.returncode, "stored features have no image b" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("model", "options", "complaint"),
    [
        (".", [], "graphs, which have no gradients"),
        ("empty", ["--prototypes"], "has no prototypes yet"),
        ("other", ["--prototypes"], "only pma_net has"),
        ("empty", ["--max-words", "9999"], "max_words is 9999, but the captioner can decode"),
    ],
)
def test_a_model_that_cannot_be_explained_is_refused(model, options, complaint, tmp_path):
    if model == "empty":
        saved_pma_net(tmp_path / model, ready=False)
    elif model == "other":
        saved(tmp_path / model)
    done = run(tmp_path / model, photograph(tmp_path / "a.png"), "-o", tmp_path / "out.png", *options)
    assert (done.returncode, complaint in done.stderr) == (1, True)


def test_the_prototypes_of_each_photograph_are_a_row_beside_the_captioners_frame(tmp_path):
    photographs = [photograph(tmp_path / name) for name in ("a.png", "b.png")]
    model = saved_pma_net(tmp_path / "best.safetensors", ready=True, image_size=288)
    done = run(model, *photographs, "-o", tmp_path / "out.png", "--prototypes")
    assert done.returncode == 0, done.stderr
    assert cv2.imread(str(tmp_path / "out.png")).shape[0] == 2 * 288
    assert "b.png: w" in done.stdout
