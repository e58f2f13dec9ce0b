"""Weights in 16 bits, and in one file for several graphs."""

import numpy as np
import onnx
from onnx import helper

from export.captioner_graph import loop_form, static_form
from export.storage import share_weights, store_as_float16, store_as_int8
from tests.export.graphs import MAX_WORDS, ragged, run, session_of
from tests.export.passes.small_graphs import graph_of


def test_rounded_weights_stored_in_16_bit_lose_nothing(traced):
    graph = loop_form(traced, MAX_WORDS)
    whole = run(session_of(graph), ragged(7, 0))
    size = len(graph.SerializeToString())
    store_as_float16(graph)
    assert len(graph.SerializeToString()) < 0.65 * size
    halved = run(session_of(graph), ragged(7, 0))
    np.testing.assert_array_equal(halved["words"], whole["words"])
    np.testing.assert_allclose(halved["log_probabilities"], whole["log_probabilities"], atol=1e-5)


def test_convolutions_that_were_not_rounded_are_not_stored_in_8_bit(vision_graph):
    graph = onnx.ModelProto()
    graph.CopyFrom(vision_graph)
    store_as_int8(graph)
    assert graph.SerializeToString() == vision_graph.SerializeToString()


def test_the_first_of_graphs_that_share_their_weights_keeps_the_names_of_equal_ones():
    table = np.zeros((40, 40), np.float32)
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("MatMul", ["h", "b"], ["y"])]
    graphs = [graph_of(nodes, {"x": [2, 40]}, ["y"], {"a": table, "b": table}) for _ in range(2)]
    weights = share_weights(graphs)
    assert [tensor.name for tensor in weights.graph.initializer] == ["a", "b"]
    assert [list(node.input) for node in graphs[0].graph.node] == [["x", "a"], ["h", "b"]]


def test_graphs_that_share_their_weights_store_them_once_and_give_what_they_gave(traced):
    graphs = [loop_form(traced, MAX_WORDS), static_form(traced, MAX_WORDS, 9)]
    alone = [graph.SerializeToString() for graph in graphs]
    weights = share_weights(graphs).SerializeToString()
    assert 0.7 * len(alone[0]) < len(weights) < len(alone[0])
    for graph, before in zip(graphs, alone, strict=True):
        whole = onnx.load_model_from_string(graph.SerializeToString() + weights)
        onnx.checker.check_model(whole)
        expected, found = (
            run(session_of(model), ragged(1, 2)) for model in (onnx.load_model_from_string(before), whole)
        )
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
