"""Exact simplifications of traced graphs, so that the other passes find the layers."""

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, DeduplicateInitializersPass

from export.passes.constants import constant_of, new_constant
from export.weights import without_unused


def simplify(model: onnx.ModelProto) -> onnx.ModelProto:
    """Split Gemm, cancel axes that are added and removed, and compute equal expressions once."""
    converted = ir.from_proto(model)
    for node in list(converted.graph):
        if node.op_type == "Gemm":
            _split_gemm(converted.graph, node)
        elif node.op_type == "Squeeze":
            _cancel_axes(node)
        elif node.op_type == "Gather":
            _index_by_scalar(node)
    DeduplicateInitializersPass()(converted)
    CommonSubexpressionEliminationPass()(converted)
    return without_unused(converted)


def plain_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Write every linear layer as MatMul with a constant, and Add.

    The exporter writes ``x @ transpose(w)`` where another node reads ``w`` too: the lookup of words in a table that is
    also the projection to them. Here the product gets a transposed copy.
    """
    converted = ir.from_proto(model)
    for gemm in [node for node in converted.graph if node.op_type == "Gemm"]:
        _split_gemm(converted.graph, gemm)
    for product in [node for node in converted.graph if node.op_type == "MatMul"]:
        transposed = product.inputs[1]
        transpose = None if transposed is None else transposed.producer()
        weight = constant_of(transpose.inputs[0]) if transpose and transpose.op_type == "Transpose" else None
        if weight is not None and weight.ndim == 2:
            name = f"{product.outputs[0].name}/weight"
            product.replace_input_with(1, new_constant(converted.graph, name, np.ascontiguousarray(weight.T)))
    return without_unused(converted)


def _split_gemm(graph: ir.Graph, gemm: ir.Node) -> None:
    """Write ``alpha * a @ b + beta * c`` of constants ``b``, ``c`` as MatMul and Add; ONNX Runtime joins them again."""
    a, b, c = (*gemm.inputs, None)[:3]
    weight, bias = constant_of(b), constant_of(c)
    alpha, beta = gemm.attributes.get_float("alpha", 1.0), gemm.attributes.get_float("beta", 1.0)
    if a is None or weight is None or gemm.attributes.get_int("transA", default=0) != 0:
        return
    if gemm.attributes.get_int("transB", default=0) != 0:
        weight = weight.T
    if c is not None and (bias is None or bias.size not in (1, weight.shape[1])):
        return
    (output,) = gemm.outputs
    weight = weight * np.asarray(alpha, weight.dtype)
    name = output.name
    nodes = [ir.node("MatMul", [a, new_constant(graph, f"{name}/weight", np.ascontiguousarray(weight))])]
    if bias is not None:
        scaled = (bias * np.asarray(beta, bias.dtype)).reshape(-1)
        nodes.append(ir.node("Add", [nodes[0].outputs[0], new_constant(graph, f"{name}/bias", scaled)]))
    for node in nodes:
        node.outputs[0].type, node.outputs[0].shape = output.type, output.shape
        node.outputs[0].name = name if node is nodes[-1] else f"{name}/product"
        node.name = f"{gemm.name}/{node.op_type}"
    graph.insert_before(gemm, nodes)
    ir.convenience.replace_all_uses_with(output, nodes[-1].outputs[0], replace_graph_outputs=True)
    graph.remove(gemm, safe=True)


def _cancel_axes(squeeze: ir.Node) -> None:
    """Replace ``Squeeze(Unsqueeze(x, axes), axes)`` by ``x``."""
    value = squeeze.inputs[0]
    unsqueeze = None if value is None else value.producer()
    if unsqueeze is None or unsqueeze.op_type != "Unsqueeze":
        return
    removed, added = (constant_of(node.inputs[1]) if len(node.inputs) > 1 else None for node in (squeeze, unsqueeze))
    source = unsqueeze.inputs[0]
    if removed is None or added is None or source is None or removed.tolist() != added.tolist():
        return
    (result,) = squeeze.outputs
    if result.is_graph_output():
        if source.producer() is None or source.is_graph_output():
            return
        result.name, source.name = source.name, result.name
    ir.convenience.replace_all_uses_with(result, source, replace_graph_outputs=True)


def _index_by_scalar(gather: ir.Node) -> None:
    """Look up ``table[scalar]``, (d), instead of ``table[scalar + [0]]``, (1, d), if only added to larger tensors."""
    index, (row,) = gather.inputs[1], gather.outputs
    add = None if index is None else index.producer()
    if (
        add is None
        or add.op_type != "Add"
        or gather.attributes.get_int("axis", default=0) != 0
        or row.is_graph_output()
    ):
        return
    for scalar, other in (add.inputs, reversed(add.inputs)):
        zero = constant_of(other)
        if zero is None or zero.tolist() != [0] or scalar is None or scalar.shape is None or len(scalar.shape):
            continue
        others = [value for user, _ in row.uses() for value in user.inputs if value is not None and value is not row]
        if all(user.op_type == "Add" for user, _ in row.uses()) and all(
            value.shape is not None and len(value.shape) > 1 for value in others
        ):
            gather.replace_input_with(1, scalar)
            if row.shape is not None:
                row.shape = ir.Shape(row.shape[1:])
        return
