"""What depends on the image alone is computed once an image."""

import numpy as np
from onnx import helper

from export.passes.hoist import hoist
from tests.export.passes.small_graphs import graph_of, kinds, results, weights


def test_nodes_of_the_image_alone_move_to_the_start():
    start = graph_of(
        [helper.make_node("Relu", ["image"], ["keys"]), helper.make_node("Tanh", ["image"], ["values"])],
        {"image": ["n", 4]}, ["keys", "values"], {},
    )  # fmt: skip
    step = graph_of(
        [
            helper.make_node("Mul", ["keys", "two"], ["doubled"]),
            helper.make_node("Add", ["doubled", "values"], ["sum"]),
            helper.make_node("Add", ["sum", "word"], ["y"]),
            helper.make_node("Mul", ["keys", "word"], ["z"]),
        ],
        {"keys": ["n", 4], "values": ["n", 4], "word": ["n", 4]}, ["y", "z"], {"two": np.full(4, 2, np.float32)},
    )  # fmt: skip
    new_start, new_step, taken = hoist(start, step, ["keys", "values"])
    assert kinds(new_start) == ["Relu", "Tanh", "Mul", "Add"]
    assert kinds(new_step) == ["Add", "Mul"]
    assert taken == ("keys", "once/sum")
    assert [value.name for value in new_start.graph.output] == list(taken)
    assert sorted(value.name for value in new_step.graph.input) == sorted([*taken, "word"])
    image, word = weights(2, 4), weights(2, 4)
    given = dict(zip(("keys", "values"), results(start, image=image), strict=True))
    moved = dict(zip(taken, results(new_start, image=image), strict=True))
    for ours, expected in zip(results(new_step, word=word, **moved), results(step, word=word, **given), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)
