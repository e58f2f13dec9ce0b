"""Layers that learn with 8-bit arithmetic: they compute what ONNX Runtime computes, a graph says what torch says."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

from export.captioner_graph import loop_form
from export.passes.int8 import as_computed, layers_of
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.export.graphs import run, session_of
from tests.tiny_model import MAX_WORDS, tiny_captioner, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.eight_bits import EightBitLinear, rounded_once, set_eight_bits


def in_8_bits_by_onnx_runtime(layer, x, folder):
    """What ONNX Runtime computes when its own quantiser has put the layer in 8 bits."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="layer")
    weight = numpy_helper.from_array(layer.weight.detach().numpy().T.copy(), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "layer", [value("x", TensorProto.FLOAT, x.shape)], [value("y", TensorProto.FLOAT, None)], [weight]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "float.onnx")
    quantize_dynamic(
        folder / "float.onnx", folder / "int8.onnx", per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
    )
    session = onnxruntime.InferenceSession(folder / "int8.onnx", providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {"x": x})[0]
    return found


@pytest.mark.parametrize("offset", [0.0, 3.0, -3.0])
def test_a_layer_computes_what_onnx_runtime_computes_in_8_bits(offset, tmp_path):
    torch.manual_seed(0)
    layer = nn.Linear(64, 48, bias=False)
    x = torch.randn(1, 7, 64) + offset
    module = nn.Sequential(layer)
    set_eight_bits(module, True)
    found = module(x).detach().numpy()
    expected = in_8_bits_by_onnx_runtime(layer, x.numpy(), tmp_path)
    exact = layer(x).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - exact).max() > 1e-3


def test_every_image_of_a_batch_has_a_scale_of_its_own():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 8))
    set_eight_bits(module, True)
    x = torch.randn(2, 3, 16)
    x[1] *= 100
    torch.testing.assert_close(module(x)[0], module(x[:1])[0])


def test_gradients_pass_the_rounding():
    torch.manual_seed(0)
    layer = nn.Linear(16, 8)
    module = nn.Sequential(layer)
    set_eight_bits(module, True)
    x = torch.randn(4, 16, requires_grad=True)
    module(x).sum().backward()
    torch.testing.assert_close(layer.weight.grad, x.detach().sum(0).expand(8, 16), atol=0.1, rtol=0.05)
    torch.testing.assert_close(x.grad, layer.weight.detach().sum(0).expand(4, 16), atol=0.1, rtol=0.05)


def test_weights_that_an_optimiser_has_changed_are_rounded_anew_by_the_next_search():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 8))
    set_eight_bits(module, True)
    x = torch.randn(1, 16)
    # The fused optimiser changes weights without a new version of the tensor.
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1, fused=True)
    with torch.inference_mode(), rounded_once():
        before = module(x)
        torch.testing.assert_close(module(x), before)
    module(x).sum().backward()
    optimizer.step()
    with torch.inference_mode():
        expected = module(x)
        with rounded_once():
            found = module(x)
    torch.testing.assert_close(found, expected)
    assert (found - before).abs().max() > 0.1


@pytest.mark.long
def test_a_graph_in_8_bits_says_what_a_captioner_that_was_trained_so_says():
    captioner = tiny_captioner("git")
    trained = sum(1 for layer in captioner.modules() if isinstance(layer, nn.Linear))
    set_eight_bits(captioner, True)
    assert sum(1 for layer in captioner.modules() if isinstance(layer, EightBitLinear)) == trained
    traced = trace_captioner(captioner, Search(3))
    eight_bits = as_computed(traced, captioner, trained=True)
    assert eight_bits.report()["trained"] is True
    assert 0 < len(eight_bits.layers) <= len(layers_of(traced))
    # Both graphs have GIT's layers, and its table of words is also the projection.
    assert not layers_of(eight_bits.traced)
    session = session_of(loop_form(eight_bits.traced, MAX_WORDS))
    for seed in range(8):
        visual = tiny_visual(1, 6, seed=seed)
        found = run(session, visual)
        with torch.inference_mode():
            expected = beam_search(captioner, visual, SearchSettings(3, MAX_WORDS))
        length = min(found["words"].shape[2], expected.words.shape[2])
        np.testing.assert_array_equal(found["words"][0, 0, :length], expected.words[0, 0, :length].numpy())
        np.testing.assert_allclose(found["scores"][0, 0], expected.scores[0, 0].numpy(), atol=0.02)
