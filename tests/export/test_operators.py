"""Graphs against the published list of TensorRT's operators."""

import pytest
from onnx import TensorProto, helper

from export.captioner_graph import loop_form, static_form
from export.passes.float16 import to_float16
from export.tensorrt import unsupported_by_tensorrt


def graph_of(node, kind=TensorProto.FLOAT, size=4):
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, [size])],
        [helper.make_tensor_value_info("y", kind, None)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_the_static_form_in_float16_is_on_the_list_whole(traced):
    assert unsupported_by_tensorrt(static_form(to_float16(traced), 6, 9)) == []


def test_the_vision_graph_is_on_the_list_with_any_batch(vision_graph):
    assert unsupported_by_tensorrt(vision_graph, static=False) == []


def test_a_graph_with_a_loop_is_not_static(traced):
    reasons = unsupported_by_tensorrt(loop_form(traced, 6))
    assert any(reason.startswith("Loop") for reason in reasons)


def test_the_listed_types_are_not_those_of_axes_and_sizes():
    model = graph_of(helper.make_node("CumSum", ["x", "axis"], ["y"]))
    model.graph.initializer.append(helper.make_tensor("axis", TensorProto.INT64, [], [0]))
    assert unsupported_by_tensorrt(model) == []
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    assert unsupported_by_tensorrt(model) == ["CumSum is listed as supported, but not for INT64 (x)"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (graph_of(helper.make_node("NonZero", ["x"], ["y"])), "NonZero"),
        (graph_of(helper.make_node("Det", ["x"], ["y"])), "Det () is listed as not supported by onnx-tensorrt 10.1"),
        (graph_of(helper.make_node("Swish", ["x"], ["y"])), "Swish () is not in the list of onnx-tensorrt 10.1"),
        (graph_of(helper.make_node("Relu", ["x"], ["y"]), size="batch"), "a shape that is not fixed"),
        (
            graph_of(helper.make_node("Identity", ["x"], ["y"]), TensorProto.UINT8),
            "Identity is listed as supported, but not for UINT8",
        ),
        (
            graph_of(helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")),
            "Gelu () of com.microsoft is not an ONNX operator",
        ),
    ],
    ids=["dynamic", "not supported", "not listed", "shape", "type", "not standard"],
)
def test_what_is_in_the_way_is_named(model, reason):
    if model.graph.node[0].domain:
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert any(reason in found for found in unsupported_by_tensorrt(model))
