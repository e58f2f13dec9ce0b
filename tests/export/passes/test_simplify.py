"""What tracing leaves behind is removed, and nothing else changes."""

import numpy as np
from onnx import helper

from export.passes.int8 import quantise_products
from export.passes.simplify import plain_products, simplify
from tests.export.passes.small_graphs import graph_of, kinds, results, weights


def test_an_axis_that_is_added_and_removed_leaves_no_trace():
    axes = {"two": np.array([2]), "one": np.array([1])}
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("Unsqueeze", ["h", "two"], ["longer"]),
        helper.make_node("Squeeze", ["longer", "two"], ["y"]),
        helper.make_node("Unsqueeze", ["h", "one"], ["other"]),
        helper.make_node("Squeeze", ["other", "two"], ["z"]),
    ]
    model = graph_of(nodes, {"x": [3, 1]}, ["y", "z"], axes)
    simple = simplify(model)
    assert kinds(simple) == ["Relu", "Unsqueeze", "Squeeze"]  # the second pair moves an axis
    assert [output.name for output in simple.graph.output] == ["y", "z"]
    x = weights(3, 1)
    for ours, expected in zip(results(simple, x=x), results(model, x=x), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_table_that_is_also_a_projection_is_looked_up_in_float32_and_multiplied_in_8_bits():
    nodes = [
        helper.make_node("Gather", ["table", "rows"], ["embedded"]),
        helper.make_node("Add", ["x", "embedded"], ["h"]),
        helper.make_node("Transpose", ["table"], ["transposed"], perm=[1, 0]),
        helper.make_node("MatMul", ["h", "transposed"], ["y"], name="projection"),
    ]
    table, rows = weights(9, 4), np.array([3, 5])
    model = graph_of(nodes, {"x": [2, 4]}, ["y"], {"table": table, "rows": rows})
    plain = plain_products(model)
    assert kinds(plain) == ["Gather", "Add", "MatMul"]
    x = weights(2, 4)
    (expected,) = results(model, x=x)
    np.testing.assert_array_equal(results(plain, x=x)[0], expected)
    quantised = quantise_products(model)
    assert {"Gather", "MatMulInteger"} <= set(kinds(quantised))
    assert [tensor.name for tensor in quantised.graph.initializer if list(tensor.dims) == [9, 4]] == ["table"]
    assert not {"MatMul", "Transpose"} & set(kinds(quantised))
    np.testing.assert_allclose(results(quantised, x=x)[0], expected, atol=0.1)
