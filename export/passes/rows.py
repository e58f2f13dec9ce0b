"""Join the axes of images and beams for layers that work row by row.

A traced decoder has the three axes images x beams x width, and ONNX Runtime adds a bias within the product (``Gemm``)
for matrices only.
"""

import numpy as np
import onnx
import onnx_ir as ir

from export.passes.constants import new_constant
from export.weights import without_unused

_AXES = 3


def flatten_rows(model: onnx.ModelProto) -> onnx.ModelProto:
    """Compute linear layers, their sums, LayerNorm, GELU and ReLU on (B * k, d) in place of (B, k, d).

    If k is dynamic (an encoder's tokens) the graph stays as it is.
    """
    converted = ir.from_proto(model)
    graph = converted.graph
    by_rows = {node: sizes for node in graph if (sizes := _sizes_of_rows(node)) is not None}
    made = {node.outputs[0] for node in by_rows}
    flat: dict[ir.Value, ir.Value] = {}
    for node in by_rows:
        for index, value in enumerate(node.inputs):
            if value is None or value in made or (sizes := _inner_sizes(value)) is None:
                continue
            if value not in flat:
                flat[value] = _reshape(graph, value, sizes[1:])
                graph.insert_before(node, [_maker(flat[value])])
            node.replace_input_with(index, flat[value])
    for node, sizes in by_rows.items():
        (value,) = node.outputs
        value.shape = ir.Shape([None, sizes[-1]])
        # A Reshape that leaves a size open accepts the matrix as well as the tensor.
        users = [use for use in value.uses() if use.node not in by_rows and not _leaves_one_open(use.node)]
        if users:
            back = _reshape(graph, value, sizes)
            graph.insert_after(node, [_maker(back)])
            for user, index in users:
                user.replace_input_with(index, back)
    _join_reshapes(graph)
    return without_unused(converted)


def _sizes_of_rows(node: ir.Node) -> tuple[int, ...] | None:
    """Return k and d of the output of ``node`` if it works row by row, else None."""
    sizes = _inner_sizes(node.outputs[0])
    if sizes is None or node.outputs[0].is_graph_output():
        return None
    first, *others = [value for value in node.inputs if value is not None]
    if node.op_type == "MatMul":
        fits = _inner_sizes(first) is not None and others[0].const_value is not None and _axes(others[0]) == 2
    elif node.op_type == "Add":  # as many rows, or one row that is added to all
        fits = all(_inner_sizes(value) == sizes or _axes(value) == 1 for value in (first, *others))
    elif node.op_type == "LayerNormalization":
        fits = node.attributes.get_int("axis", -1) in (-1, _AXES - 1)
    else:
        fits = node.op_type in ("Gelu", "Relu")
    return sizes if fits else None


def _join_reshapes(graph: ir.Graph) -> None:
    """Replace a Reshape of a Reshape by one."""
    for node in list(graph):
        if node.op_type != "Reshape" or not _leaves_one_open(node):
            continue
        earlier = node.inputs[0].producer() if node.inputs[0] is not None else None
        if earlier is not None and earlier.op_type == "Reshape":
            node.replace_input_with(0, earlier.inputs[0])


def _reshape(graph: ir.Graph, value: ir.Value, sizes: tuple[int, ...]) -> ir.Value:
    """Make a Reshape of ``value`` to an open size and these sizes; its node is not in the graph yet."""
    name = f"{value.name}/{'x'.join(map(str, sizes))}"
    shape = new_constant(graph, f"{name}/shape", np.array([-1, *sizes]))
    (output,) = ir.node("Reshape", [value, shape]).outputs
    output.name, output.type, output.shape = name, value.type, ir.Shape([None, *sizes])
    return output


def _maker(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node


def _leaves_one_open(node: ir.Node) -> bool:
    if node.op_type != "Reshape" or node.inputs[1] is None or node.inputs[1].const_value is None:
        return False
    sizes = node.inputs[1].const_value.numpy().tolist()
    return sizes.count(-1) == 1 and 0 not in sizes


def _inner_sizes(value: ir.Value) -> tuple[int, ...] | None:
    """Return k and d of (B, k, d) if both are known, else None."""
    if value.shape is None or len(value.shape) != _AXES:
        return None
    sizes = tuple(size for size in value.shape[1:] if isinstance(size, int))
    return sizes if len(sizes) == _AXES - 1 else None


def _axes(value: ir.Value) -> int | None:
    return None if value.shape is None else len(value.shape)
