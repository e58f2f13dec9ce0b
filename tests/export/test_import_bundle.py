"""A bundle read back as a checkpoint: the weights, the captions, and training that starts from them."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from export.captioner_graph import loop_form
from export.import_bundle import main
from export.parameter_table import parameter_table
from export.passes.int8 import layers_of, to_int8
from smart_caption_ros.captioning import Bundle, Captioner
from tests.engines.small_graphs import list_file
from tests.export.command import export
from tests.tiny_graphs import TRACED, tiny_traced
from tests.tiny_model import tiny_trained
from training.decoding.beam_search import SearchSettings
from training.engine.bundle_captioner import PARAMETERS, load_trained, weights_of
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError
from training.vision.weight_files import read_parameters

FRAMES = np.random.default_rng(0).integers(0, 256, (6, 224, 224, 3), np.uint8)


def imported(bundle, tmp_path):
    """Run the command on a bundle and load what it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["import_bundle", str(bundle), "-o", str(tmp_path / "new" / "c.safetensors")])
        assert main() == 0
    return TrainedCaptioner.load(tmp_path / "new" / "c.safetensors")


def weights_before_and_after(family, *, in_8_bits=False):
    """The parameters of a tiny captioner, and those that are read from its graph."""
    captioner, traced = tiny_traced(family)
    places = parameter_table(captioner, traced)
    if in_8_bits:
        traced = to_int8(traced, layers_of(traced))
    parameters = {name: parameter.detach() for name, parameter in captioner.named_parameters()}
    return parameters, weights_of(read_parameters(loop_form(traced, 8).SerializeToString()), places, captioner)


def changed_bundle(bundle, folder, places):
    """Copy a bundle with another table of its parameters."""
    copy = Path(shutil.copytree(bundle, folder))
    (copy / PARAMETERS).write_text(json.dumps(places))
    list_file(copy, PARAMETERS)
    return copy


@pytest.fixture(scope="module")
def trained_checkpoint(tmp_path_factory):
    """A tiny captioner no two tensors of which are equal, as after training."""
    trained = tiny_trained()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trained.captioner.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator)
    path = tmp_path_factory.mktemp("trained") / "best.safetensors"
    trained.save(path)
    return path


@pytest.mark.long
@pytest.mark.parametrize("family", TRACED)
def test_float32_weights_come_back_but_for_the_bias_of_words_that_are_never_chosen(family):
    weights, found = weights_before_and_after(family)
    chosen = [word for word in range(30) if word not in SearchSettings().forbidden]
    assert found.keys() >= weights.keys()
    for name, weight in weights.items():
        words = chosen if name.endswith("word_projection.bias") else slice(None)
        torch.testing.assert_close(found[name][words], weight[words], rtol=1e-6, atol=1e-8)


@pytest.mark.long
def test_weights_in_8_bits_come_back_as_they_were_rounded():
    weights, found = weights_before_and_after("m2", in_8_bits=True)
    for name, weight in weights.items():
        if weight.ndim == 2 and name not in ("word_embedding.weight", "word_projection.weight"):
            step = weight.abs().amax(dim=1, keepdim=True) / 64
            assert ((found[name] - weight).abs() <= step).all(), name


@pytest.mark.long
def test_the_checkpoint_captions_as_the_bundle_does(trained_checkpoint, pictures, tmp_path):
    bundle = tmp_path / "bundle"
    options = ("--calibration", pictures, "--repeat-penalty", 2, "--end-penalty", 1, "--name", "origin", "--no-static")
    done = export(trained_checkpoint, bundle, *options)
    assert done.status == 0, done.err
    assert f"3 of 3 captions of photographs of {pictures} identical" in done.out
    trained = imported(bundle, tmp_path)
    assert (trained.record["name"], trained.search) == ("origin", Bundle.load(bundle).search)
    assert (trained.search.repeat_penalty, trained.search.end_penalty) == (2.0, 1.0)
    assert trained.record["backbone_trained_on"] == Bundle.load(bundle).manifest["trained_on"]
    assert trained.record["experiment"] == {**tiny_trained().record["experiment"], "name": "origin"}
    words = trained.words(trained.caption_images(FRAMES))
    assert [" ".join(caption) for caption in words] == Captioner.from_bundle(bundle).caption_batch(list(FRAMES))


def test_the_default_bundle_says_where_all_of_its_parameters_are():
    bundle = Bundle.load()
    trained = load_trained(bundle.path)
    total = sum(parameter.numel() for parameter in (*trained.captioner.parameters(), *trained.backbone.parameters()))
    assert total == bundle.manifest["architecture"]["parameters"]


def test_a_bundle_that_does_not_say_where_its_parameters_are_is_refused(exported_bundle, tmp_path):
    other = json.loads((exported_bundle / PARAMETERS).read_text())
    next(iter(other.values()))["constant"] = "start/other"
    for places, reason in (({}, "it lacks"), (other, ".*start/other")):
        copy = changed_bundle(exported_bundle, tmp_path / reason[:5], places)
        with pytest.raises(CheckpointError, match=rf"parameters\.json does not fit the bundle \({reason}"):
            load_trained(copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["files"][PARAMETERS]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"has no parameters\.json.*give the checkpoint"):
        load_trained(copy)
