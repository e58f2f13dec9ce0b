"""What every published backbone has to do, by the contract of training.vision.backbone."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from export.tensorrt import unsupported_by_tensorrt
from export.vision import export_vision
from tests.frames import blobs
from tests.tiny_backbones import NAMES, save_backbone
from training.errors import BackboneError
from training.vision.released_weights import open_backbone
from training.vision.side_by_side import construct

_TRACED = "timm_cnn"
"""The backbone whose graph is traced in the quick tests; it takes seconds."""
_PLAIN = ("clip", "siglip", "dinov2_registers", "vit", "blip", "florence2", "timm_vit")
_FUSED = ("dinov2", "vit_gpt2", "florence2", "timm_vit")
"""Backbones that the long tests trace with plain and with fused attention: each kind once. CLIP's tower is GIT's,
which export/test_weights.py imports in 8 bits with fused attention."""


@pytest.fixture(scope="module", params=NAMES)
def backbone(request, tmp_path_factory):
    return open_backbone(save_backbone(request.param, tmp_path_factory.mktemp("published")), Path("/nowhere"))


def frames_of(backbone, count=2):
    width, height = backbone.spec.preprocessing.size
    random = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, height, width, 3), dtype=torch.uint8, generator=random)


def test_the_tokens_are_those_of_the_spec_and_the_same_after_saving(backbone):
    spec, frames = backbone.spec, frames_of(backbone)
    with torch.inference_mode():
        tokens = backbone.tokens(frames)
        assert tokens.shape == (2, spec.before + spec.rows * spec.columns, spec.token_width)
        again = construct(json.loads(json.dumps({"kind": backbone.kind, **backbone.options}))).eval()
        again.load_state_dict(backbone.state_dict())
        assert again.spec == spec
        torch.testing.assert_close(again.tokens(frames), tokens)


@pytest.mark.parametrize(
    ("backbone", "fused_attention"),
    [
        (_TRACED, False),
        *(pytest.param(name, False, marks=pytest.mark.long) for name in _PLAIN),
        *(pytest.param(name, True, marks=pytest.mark.long) for name in _FUSED),
    ],
    indirect=["backbone"],
)
def test_the_exported_graph_equals_torch_and_tensorrt_has_its_operators(backbone, fused_attention):
    graph, frames = export_vision(backbone, fused_attention=fused_attention), frames_of(backbone, 3)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (tokens,) = session.run(None, {"image_bgr": frames.numpy()})
    with torch.inference_mode():
        np.testing.assert_allclose(tokens, backbone.tokens(frames).numpy(), atol=2e-5)
    assert fused_attention or not unsupported_by_tensorrt(graph, static=False)


def test_a_pixel_changes_the_token_of_its_cell_most(backbone):
    """The grid is row by row: rows and columns exchanged would move the largest change to another cell."""
    spec = backbone.spec
    grey = torch.full((1, spec.preprocessing.height, spec.preprocessing.width, 3), 127, dtype=torch.uint8)
    row, column = spec.rows - 1, 0
    height, width = spec.preprocessing.height // spec.rows, spec.preprocessing.width // spec.columns
    lit = grey.clone()
    lit[:, row * height : (row + 1) * height, column * width : (column + 1) * width] = torch.tensor([255, 0, 0])
    with torch.inference_mode():
        change = (backbone.tokens(lit) - backbone.tokens(grey)).abs().sum(dim=-1)[0, spec.before :]
    assert int(change.argmax()) == row * spec.columns + column


def test_its_weights_learn(backbone):
    backbone.tokens(frames_of(backbone)).square().mean().backward()
    learning = [parameter.grad for parameter in backbone.trainable.parameters() if parameter.grad is not None]
    assert sum(bool(gradient.abs().sum() > 0) for gradient in learning) > len(learning) / 2
    backbone.zero_grad(set_to_none=True)


def test_larger_frames_have_more_tokens(backbone):
    larger = construct({"kind": backbone.kind, **backbone.options}).eval()
    larger.load_state_dict(backbone.state_dict())
    width, height = (2 * side for side in backbone.spec.preprocessing.size)
    larger.set_image_size(width, height)
    assert larger.spec.rows * larger.spec.columns == 4 * backbone.spec.rows * backbone.spec.columns
    with torch.inference_mode():
        assert larger.tokens(frames_of(larger)).shape[1] == larger.spec.tokens
    again = construct({"kind": larger.kind, **larger.options})
    again.load_state_dict(larger.state_dict())


def test_files_that_do_not_fit_are_refused_in_one_sentence(tmp_path):
    def refusal(name):
        with pytest.raises(BackboneError) as caught:
            open_backbone(name, tmp_path)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "no such folder" in refusal(f"hf/{tmp_path}/nowhere")
    assert "config.json" in refusal(f"hf/{tmp_path}")
    name = save_backbone("clip", tmp_path / "clip")
    weights = tmp_path / "clip" / "model.safetensors"
    config = tmp_path / "clip" / "config.json"
    text_model = tmp_path / "text"
    text_model.mkdir()
    (text_model / "config.json").write_text('{"model_type": "gpt2"}')
    assert "'gpt2'" in refusal(f"hf/{text_model}")
    other = json.loads(config.read_text())
    other["vision_config"]["num_hidden_layers"] = 3
    config.write_text(json.dumps(other))
    assert "lack" in refusal(name)
    weights.unlink()
    assert "model.safetensors" in refusal(name)
    assert "vit_of_nobody" in refusal("timm/vit_of_nobody")


def test_an_id_that_cannot_be_downloaded_says_how_to_fetch_it(monkeypatch, tmp_path):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(BackboneError, match="hf download nobody/nothing --local-dir"):
        open_backbone("hf/nobody/nothing", tmp_path)


@pytest.mark.parametrize("name", ["clip", "siglip", "dinov2", "vit", "blip"])
def test_frames_and_tokens_are_those_of_transformers(name, tmp_path):
    """To the rounding of a pixel, which transformers keeps as a float."""
    import transformers

    called = save_backbone(name, tmp_path)
    backbone = open_backbone(called, Path("/nowhere"))
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path, use_fast=False)
    for seed, (height, width) in enumerate([(60, 80), (81, 45), (33, 200)]):
        photograph = blobs(seed, height, width)
        expected = processor(images=[np.ascontiguousarray(photograph[..., ::-1])], return_tensors="pt")["pixel_values"]
        frame = torch.from_numpy(backbone.spec.preprocessing.apply(photograph))[None]
        assert (backbone.normalise(frame) - expected).abs().max() < 1.01 / 255 / min(backbone.spec.std)
