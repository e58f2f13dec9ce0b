"""A bundle read back as a checkpoint: the weights, the captions, and training that starts from them."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from export.captioner_weights import load_bundle_captioner
from export.import_bundle import main
from export.loop_form import loop_form
from export.passes.int8 import TRAINED_WEIGHTS, layers_of, to_int8
from export.trace import trace_captioner
from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.export.command import export
from tests.tiny_model import tiny_captioner, tiny_trained
from training.decoding.beam_search import SearchSettings
from training.engine.buffers import released_tensors
from training.engine.trained_captioner import TrainedCaptioner

FRAMES = np.random.default_rng(0).integers(0, 256, (6, 224, 224, 3), np.uint8)


def imported(bundle: Path, tmp_path: Path) -> TrainedCaptioner:
    """Run the command on a bundle and load what it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["import_bundle", str(bundle), "-o", str(tmp_path / "new" / "c.safetensors")])
        assert main() == 0
    return TrainedCaptioner.load(tmp_path / "new" / "c.safetensors")


def family_bundle(
    family: str, tiny_bundle: Path, folder: Path, *, in_8_bits: bool = False
) -> tuple[dict[str, torch.Tensor], Bundle]:
    """The weights of a tiny captioner of a family, and a bundle with its graph."""
    captioner = tiny_captioner(family)
    traced = trace_captioner(captioner, 2)
    if in_8_bits:
        traced = to_int8(traced, layers_of(traced), TRAINED_WEIGHTS, trained=True)
    onnx.save(loop_form(traced, 8), str(folder / CAPTIONER_GRAPH))
    bundle = dataclasses.replace(
        Bundle.load(tiny_bundle),
        path=folder,
        manifest={"architecture": {"family": family, **dataclasses.asdict(captioner.config)}, "decoding": {}},
        beam_size=2,
        captioner_inputs=traced.inputs,
        vocabulary=Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30)))),
    )
    return released_tensors(captioner), bundle


@pytest.fixture(scope="module")
def trained_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def test_float32_weights_come_back_but_for_the_bias_of_words_that_are_never_chosen(
    tiny_bundle: Path, tmp_path: Path
) -> None:
    weights, bundle = family_bundle("object_relation", tiny_bundle, tmp_path)
    found = released_tensors(load_bundle_captioner(bundle))
    chosen = [word for word in range(30) if word not in SearchSettings().forbidden]
    assert found.keys() == weights.keys()
    for name, weight in weights.items():
        words = chosen if name == "word_projection.bias" else slice(None)
        torch.testing.assert_close(found[name][words], weight[words], rtol=1e-6, atol=0)
    assert found["word_projection.bias"].abs().max() < 10


@pytest.mark.long
def test_weights_in_8_bits_come_back_as_they_were_rounded(tiny_bundle: Path, tmp_path: Path) -> None:
    weights, bundle = family_bundle("smart", tiny_bundle, tmp_path, in_8_bits=True)
    found = released_tensors(load_bundle_captioner(bundle))
    for name, weight in weights.items():
        if weight.ndim < 2 or name == "word_embedding.weight":
            torch.testing.assert_close(found[name], weight)
        else:
            step = weight.abs().amax(dim=1, keepdim=True) / 64
            assert ((found[name] - weight).abs() <= step).all(), name


@pytest.mark.long
def test_weights_that_cannot_be_read_back_are_named(tiny_bundle: Path, tmp_path: Path) -> None:
    _, bundle = family_bundle("x_lan", tiny_bundle, tmp_path)
    with pytest.raises(Exception, match=r"weights encoder\.0\.query\.scale .* keep the checkpoint"):
        load_bundle_captioner(bundle)


def test_the_checkpoint_captions_as_the_bundle_does(trained_checkpoint: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    done = export(trained_checkpoint, bundle, "--check-images", 4, "--repeat-penalty", 2, "--name", "origin")
    assert done.status == 0, done.err
    trained = imported(bundle, tmp_path)
    assert (trained.record["name"], trained.repeat_penalty) == ("origin", 2.0)
    assert trained.record["backbone_trained_on"] == Bundle.load(bundle).manifest["trained_on"]
    assert trained.record["experiment"] == {**tiny_trained().record["experiment"], "name": "origin"}
    words = trained.sentences(trained.caption_images(FRAMES, 5, 12))
    assert [" ".join(each) for each in words] == Captioner.from_bundle(bundle).caption_batch(list(FRAMES))


@pytest.mark.long
def test_a_graph_of_another_version_is_refused(
    exported_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(exported_bundle, tmp_path / "bundle"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["architecture"]["d_ff"] = 48
    (folder / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setattr(sys, "argv", ["import_bundle", str(folder), "-o", str(tmp_path / "c.safetensors")])
    assert main() == 1
    assert "exported by another version" in capsys.readouterr().err
    assert not (tmp_path / "c.safetensors").exists()
