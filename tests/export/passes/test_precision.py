"""Half precision and 8-bit layers: what is in the graph, and what comes out of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from export.captioner_graph import loop_form, static_form
from export.passes.float16 import to_float16, write_float16
from export.passes.int8 import WEIGHTS, apart_from_tables, choose, layers_of, to_int8
from export.trace import TracedCaptioner
from tests.export.graphs import MAX_WORDS, ragged, run, session_of
from tests.export.passes.small_graphs import graph_of, kinds, results, weights
from tests.frames import synthetic_images


def input_types(graph: onnx.GraphProto) -> dict[str, set[int]]:
    """Types of the floating-point inputs of each operator."""
    inferred = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph)).graph
    types = {tensor.name: tensor.data_type for tensor in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        types[value.name] = value.type.tensor_type.elem_type
    found: dict[str, set[int]] = {}
    for node in inferred.node:
        kinds = {types[name] for name in node.input if name} & {TensorProto.FLOAT, TensorProto.FLOAT16}
        found.setdefault(node.op_type, set()).update(kinds)
    return found


def test_in_float16_layers_are_halves_and_what_needs_range_is_not(traced: TracedCaptioner) -> None:
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


def test_float16_says_what_float32_says_in_both_forms(traced: TracedCaptioner) -> None:
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
def test_the_vision_graph_in_float16_takes_and_gives_what_the_other_does(vision_graph: onnx.ModelProto) -> None:
    halved, _ = write_float16(vision_graph)
    assert input_types(halved.graph)["Conv"] == {TensorProto.FLOAT16}
    images = synthetic_images(1, 224)
    expected, found = (session_of(graph).run(["tokens"], {"image_bgr": images})[0] for graph in (vision_graph, halved))
    assert found.dtype == np.float32
    # Rounded after each of 52 random layers.
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999


@pytest.mark.parametrize("weights", list(WEIGHTS))
def test_8_bit_layers_come_close_to_float32(traced: TracedCaptioner, weights: str) -> None:
    visual = ragged(1, 1)
    quantised = to_int8(traced, list(layers_of(traced)), weights)
    kept = [tensor for piece in (quantised.start, quantised.step) for tensor in piece.graph.initializer]
    small = [
        numpy_helper.to_array(tensor)
        for tensor in kept
        if tensor.data_type in (TensorProto.INT8, TensorProto.UINT8) and len(tensor.dims) == 2
    ]
    assert len(small) == len(layers_of(traced))
    if weights == "7bit":  # two products of an 8-bit input and a weight must fit 16 bits with a sign
        assert all(values.dtype == np.int8 and np.abs(values.astype(int)).max() <= 64 for values in small)
    expected = run(session_of(loop_form(traced, MAX_WORDS)), visual)
    found = run(session_of(loop_form(quantised, MAX_WORDS)), visual)
    np.testing.assert_allclose(found["log_probabilities"][0, 0, 0], expected["log_probabilities"][0, 0, 0], atol=0.3)


def test_a_products_table_of_positions_can_be_multiplied_beforehand(traced: TracedCaptioner) -> None:
    names = [node.name for node in traced.step.graph.node if node.op_type == "MatMul"]
    apart = replace(traced, step=apart_from_tables(traced.step, names))
    (added,) = {t.name for t in apart.step.graph.initializer} - {t.name for t in traced.step.graph.initializer}
    (product,) = (t.dims for t in apart.step.graph.initializer if t.name == added)
    assert product[0] == 54  # positions
    visual = ragged(2, 1)
    expected = run(session_of(loop_form(traced, MAX_WORDS)), visual)
    found = run(session_of(loop_form(apart, MAX_WORDS)), visual)
    np.testing.assert_array_equal(found["words"], expected["words"])
    np.testing.assert_allclose(found["log_probabilities"], expected["log_probabilities"], atol=1e-4)


def test_only_the_layers_that_were_named_are_in_8_bits(traced: TracedCaptioner) -> None:
    first = next(iter(layers_of(traced)))
    assert first.startswith("start/0 ")
    quantised = to_int8(traced, [first], "u8")
    assert Counter(node.op_type for node in quantised.start.graph.node)["MatMulInteger"] == 1
    assert quantised.step is traced.step


def quantised_layers(traced: TracedCaptioner) -> int:
    nodes = [node.op_type for piece in (traced.start, traced.step) for node in piece.graph.node]
    return nodes.count("MatMulInteger")


@pytest.mark.parametrize("bearable", [None, 5, 0])
def test_as_many_layers_are_chosen_as_the_bar_allows(traced: TracedCaptioner, bearable: int | None) -> None:
    chosen = len(layers_of(traced)) if bearable is None else bearable

    def describe(candidate: TracedCaptioner) -> Sequence[tuple[list[int], float]]:
        changed = quantised_layers(candidate) > chosen
        return [([4, 5, 2 + changed], -1.0)] * 10

    choice = choose(traced, "u8", describe, describe, lambda captions: 0.5)
    assert len(choice.chosen.layers) == quantised_layers(choice.traced) == chosen
    assert choice.chosen.identical == 1
    report = choice.report()
    assert report["layers"] == chosen
    assert len(report["damage_of_each_layer"]) == len(layers_of(traced))


def test_layers_are_refused_where_captions_stay_the_same_but_for_their_worth(traced: TracedCaptioner) -> None:
    same = [([4, 2], -1.0)] * 10
    worth = iter([0.5, *[0.4] * 20])
    choice = choose(traced, "u8", lambda _: same, lambda _: same, lambda _: next(worth))
    assert choice.chosen.layers == ()


def test_a_gemm_is_put_in_8_bits_as_a_product_is(traced: TracedCaptioner) -> None:
    layer = helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="layer", transB=1)
    nodes = [layer, helper.make_node("Relu", ["h"], ["y"])]
    step = graph_of(nodes, {"x": ["n", 32]}, ["y"], {"w": weights(16, 32), "b": weights(16)})
    small = replace(traced, step=step)
    (layer_name,) = (name for name in layers_of(small) if name.startswith("step/"))
    quantised = to_int8(small, [layer_name], "u8").step
    assert kinds(quantised).count("MatMulInteger") == 1
    assert "Gemm" not in kinds(quantised)
    x = weights(5, 32)
    np.testing.assert_allclose(results(quantised, x=x)[0], results(step, x=x)[0], atol=0.3)
