"""Linear layers that share an input become one, whether they were traced to MatMul or to Gemm."""

import numpy as np
import pytest
from onnx import helper

from export.passes.fuse import fuse_linears
from export.passes.simplify import simplify
from tests.export.passes.small_graphs import graph_of, kinds, results, weights


def two_layers(gemm):
    """``x`` (n, 6) -> relu(x @ a + b) and x @ c + d, (n, 4) and (n, 3)."""
    constants = {"a": weights(6, 4), "b": weights(4), "c": weights(3, 6) if gemm else weights(6, 3), "d": weights(3)}
    if gemm:
        layers = [
            helper.make_node("Gemm", ["x", "a", "b"], ["first"], name="first"),
            helper.make_node("Gemm", ["x", "c", "d"], ["second"], name="second", transB=1, alpha=0.5, beta=2.0),
        ]
    else:
        layers = [
            helper.make_node("MatMul", ["x", "a"], ["x_a"], name="first"),
            helper.make_node("Add", ["x_a", "b"], ["first"]),
            helper.make_node("MatMul", ["x", "c"], ["x_c"], name="second"),
            helper.make_node("Add", ["d", "x_c"], ["second"]),
        ]
    nodes = [*layers, helper.make_node("Relu", ["first"], ["y"]), helper.make_node("Tanh", ["second"], ["z"])]
    return graph_of(nodes, {"x": ["n", 6]}, ["y", "z"], constants)


@pytest.mark.parametrize("gemm", [False, True], ids=["MatMul", "Gemm"])
def test_layers_that_share_an_input_are_one(gemm):
    model = two_layers(gemm)
    fused = fuse_linears(simplify(model))
    assert kinds(fused).count("MatMul") == 1
    assert kinds(fused).count("Split") == 1
    assert "Gemm" not in kinds(fused)
    x = weights(5, 6)
    for ours, expected in zip(results(fused, x=x), results(model, x=x), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("gemm", [False, True], ids=["MatMul", "Gemm"])
def test_a_power_of_two_is_folded_into_the_layer_that_it_scales(gemm):
    constants = {"a": weights(6, 4), "b": weights(4), "c": np.array(0.25, np.float32)}
    layer = (
        [helper.make_node("Gemm", ["x", "a", "b"], ["h"], name="h")]
        if gemm
        else [helper.make_node("MatMul", ["x", "a"], ["x_a"]), helper.make_node("Add", ["x_a", "b"], ["h"])]
    )
    nodes = [*layer, helper.make_node("Mul", ["h", "c"], ["scaled"]), helper.make_node("Relu", ["scaled"], ["y"])]
    model = graph_of(nodes, {"x": ["n", 6]}, ["y"], constants)
    fused = fuse_linears(simplify(model))
    assert "Mul" not in kinds(fused)
    x = weights(5, 6)
    np.testing.assert_allclose(results(fused, x=x)[0], results(model, x=x)[0], atol=1e-6)


def test_a_traced_captioner_has_no_two_layers_of_one_input(traced):
    for piece in (traced.start, traced.step):
        constants = {tensor.name for tensor in piece.graph.initializer}
        layers = [node for node in piece.graph.node if node.op_type == "MatMul" and node.input[1] in constants]
        assert len({node.input[0] for node in layers}) == len(layers)
