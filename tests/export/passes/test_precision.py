"""Half precision and 8-bit layers: what is in the graph, and what comes out of it."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from export.captioner_graph import loop_form, static_form
from export.passes.float16 import to_float16, write_float16
from export.passes.int8 import layers_of, to_int8
from tests.export.graphs import MAX_WORDS, ragged, run, session_of
from tests.export.passes.small_graphs import graph_of, kinds, results, weights
from tests.frames import synthetic_images


def input_types(graph):
    """Types of the floating-point inputs of each operator."""
    inferred = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph)).graph
    types = {tensor.name: tensor.data_type for tensor in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        types[value.name] = value.type.tensor_type.elem_type
    found = {}
    for node in inferred.node:
        kinds = {types[name] for name in node.input if name} & {TensorProto.FLOAT, TensorProto.FLOAT16}
        found.setdefault(node.op_type, set()).update(kinds)
    return found


def test_in_float16_layers_are_halves_and_what_needs_range_is_not(traced):
    halved = to_float16(traced)
    for piece in (halved.start, halved.step):
        types = input_types(piece.graph)
        assert types["MatMul"] == {TensorProto.FLOAT16}
        assert types["LayerNormalization"] == types["Softmax"] == {TensorProto.FLOAT}
    assert types["TopK"] == types["Exp"] == types["Log"] == types["ReduceSum"] == {TensorProto.FLOAT}
    cache = {value.name: value.type.tensor_type.elem_type for value in halved.step.graph.input}
    keys_and_values = [name for name in cache if name.endswith(("keys", "values"))]
    assert len(keys_and_values) >= 4
    assert {cache[name] for name in keys_and_values} == {TensorProto.FLOAT16}
    assert cache["scores"] == TensorProto.FLOAT


def test_float16_says_what_float32_says_in_both_forms(traced):
    visual = ragged(1, 1)
    halved = to_float16(traced)
    expected = run(session_of(static_form(traced, MAX_WORDS, 9)), visual)
    for graph in (loop_form(halved, MAX_WORDS), static_form(halved, MAX_WORDS, 9)):
        found = run(session_of(graph), visual)
        steps = found["words"].shape[2]
        assert found["attention"].dtype == found["scores"].dtype == np.float32
        np.testing.assert_array_equal(found["words"][:, 0], expected["words"][:, 0, :steps])
        np.testing.assert_allclose(found["scores"][:, 0], expected["scores"][:, 0], atol=0.05)


@pytest.mark.long
def test_the_vision_graph_in_float16_takes_and_gives_what_the_other_does(vision_graph):
    halved, _ = write_float16(vision_graph)
    assert input_types(halved.graph)["Conv"] == {TensorProto.FLOAT16}
    images = synthetic_images(1, 224)
    expected, found = (session_of(graph).run(["tokens"], {"image_bgr": images})[0] for graph in (vision_graph, halved))
    assert found.dtype == np.float32
    # Rounded after each of 52 random layers.
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999


def test_8_bit_layers_come_close_to_float32(traced):
    visual = ragged(1, 1)
    quantised = to_int8(traced, layers_of(traced))
    kept = [tensor for piece in (quantised.start, quantised.step) for tensor in piece.graph.initializer]
    small = [numpy_helper.to_array(t) for t in kept if t.data_type == TensorProto.INT8 and len(t.dims) == 2]
    assert len(small) == len(layers_of(traced))
    # Two products of an 8-bit input and a weight must fit 16 bits with a sign.
    assert max(np.abs(values.astype(int)).max() for values in small) <= 64
    expected = run(session_of(loop_form(traced, MAX_WORDS)), visual)
    found = run(session_of(loop_form(quantised, MAX_WORDS)), visual)
    np.testing.assert_allclose(found["log_probabilities"][0, 0, 0], expected["log_probabilities"][0, 0, 0], atol=0.3)


def test_a_gemm_is_put_in_8_bits_as_a_product_is(traced):
    layer = helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="layer", transB=1)
    nodes = [layer, helper.make_node("Relu", ["h"], ["y"])]
    step = graph_of(nodes, {"x": ["n", 32]}, ["y"], {"w": weights(16, 32), "b": weights(16)})
    small = replace(traced, step=step)
    (layer_name,) = (name for name in layers_of(small) if name.startswith("step/"))
    quantised = to_int8(small, [layer_name]).step
    assert kinds(quantised).count("MatMulInteger") == 1
    assert "Gemm" not in kinds(quantised)
    x = weights(5, 32)
    np.testing.assert_allclose(results(quantised, x=x)[0], results(step, x=x)[0], atol=0.3)
