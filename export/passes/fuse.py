"""Merge linear layers that share an input, such as queries, keys and values; engines compute one large layer faster.

If all of the merged layers are split into heads alike, the split is merged as well: on small tensors an engine spends a
microsecond or two on each node, however little the node does.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir

from export.passes.constants import constant_of, new_constant
from export.weights import without_unused

_MOVES = ("Reshape", "Transpose")  # allowed between a layer and the factor that scales it


@dataclass(frozen=True)
class _Linear:
    """``output = input @ weight + bias``, as the exporter writes it."""

    multiply: ir.Node
    add: ir.Node | None
    weight: np.ndarray
    bias: np.ndarray | None

    @property
    def output(self) -> ir.Value:
        return (self.add or self.multiply).outputs[0]


def fuse_linears(model: onnx.ModelProto) -> onnx.ModelProto:
    """Fold constant factors into the layers that they scale, then merge layers that share an input.
    ``model``: of :func:`export.passes.simplify.simplify`, which writes Gemm as MatMul and Add.
    """
    converted = ir.from_proto(model)
    _fold_factors(converted.graph)
    _fold_additions(converted.graph)
    _merge(converted.graph)
    converted.graph.sort()
    return without_unused(converted)


def _fold_factors(graph: ir.Graph) -> None:
    """Write ``reshaped(x @ W + b) * c`` as ``reshaped(x @ (W * c) + (b * c))``, for powers of two.

    They change no digit of a weight, so that weights which fit into 16 bits still do; 1/8, for heads 64 wide, is one.
    """
    for node in list(graph):
        if node.op_type != "Mul":
            continue
        for scaled, other in (node.inputs, reversed(node.inputs)):
            factor = constant_of(other)
            linear = _linear_behind(scaled) if scaled is not None else None
            if scaled is None or linear is None or factor is None or not _is_power_of_two(factor):
                continue
            _replace_constant(graph, linear.multiply, 1, linear.weight * factor.reshape(()))
            if linear.add is not None and linear.bias is not None:
                _replace_constant(graph, linear.add, _bias_index(linear.add), linear.bias * factor.reshape(()))
            ir.convenience.replace_all_uses_with(node.outputs[0], scaled, replace_graph_outputs=True)
            graph.remove(node, safe=True)
            break


def _fold_additions(graph: ir.Graph) -> None:
    """Write ``(x + b) + c`` as ``x + (b + c)``, such as a bias and what excludes words."""
    for outer in list(graph):
        added = constant_of(outer.inputs[_bias_index(outer)]) if outer.op_type == "Add" else None
        inner = outer.inputs[1 - _bias_index(outer)] if added is not None else None
        linear = _linear_behind(inner) if inner is not None else None
        if added is None or linear is None or linear.add is None or linear.output is not inner:
            continue
        if linear.bias is not None and linear.bias.shape == added.shape:
            _replace_constant(graph, linear.add, _bias_index(linear.add), linear.bias + added)
            ir.convenience.replace_all_uses_with(outer.outputs[0], linear.output, replace_graph_outputs=True)
            graph.remove(outer, safe=True)


def _merge(graph: ir.Graph) -> None:
    groups: dict[tuple[ir.Value, bool], list[_Linear]] = defaultdict(list)
    for node in graph:
        linear = _linear(node) if node.op_type == "MatMul" else None
        if linear is not None and (source := node.inputs[0]) is not None:
            groups[source, linear.bias is None].append(linear)
    for (source, _), linears in groups.items():
        if len(linears) > 1:
            _merge_layers(graph, source, linears)


def _merge_layers(graph: ir.Graph, source: ir.Value, linears: list[_Linear]) -> None:
    name = "_and_".join(linear.output.name or "" for linear in linears)
    weight = np.concatenate([linear.weight for linear in linears], axis=1)
    nodes = [ir.node("MatMul", [source, new_constant(graph, f"{name}/weight", weight)])]
    biases = [linear.bias for linear in linears if linear.bias is not None]
    if biases:
        bias = new_constant(graph, f"{name}/bias", np.concatenate(biases))
        nodes.append(ir.node("Add", [nodes[-1].outputs[0], bias]))
    for node in nodes:
        node.outputs[0].type, node.outputs[0].shape = (
            linears[0].output.type,
            _widened(linears[0].output, weight.shape[1]),
        )
    heads = [_heads(linear.output) for linear in linears]
    if (first := heads[0]) is not None and all(
        split is not None and split.width == first.width and split.order == first.order for split in heads
    ):
        counts = [split.count for split in heads if split is not None]
        # -1 for the one size that is not known beforehand, the batch.
        shape = new_constant(graph, f"{name}/shape", np.array([*first.outer, sum(counts), first.width]))
        nodes.append(ir.node("Reshape", [nodes[-1].outputs[0], shape]))
        nodes.append(ir.node("Transpose", [nodes[-1].outputs[0]], {"perm": first.order}))
        axis, sizes = first.order.index(len(first.order) - 2), counts
        outputs = [split.output for split in heads if split is not None]
        unused = [node for split in heads if split is not None for node in (split.transpose, split.reshape)]
    else:
        axis, sizes = -1, [linear.weight.shape[1] for linear in linears]
        outputs, unused = [linear.output for linear in linears], []
    split_sizes = new_constant(graph, f"{name}/sizes", np.array(sizes))
    split = ir.node("Split", [nodes[-1].outputs[0], split_sizes], {"axis": axis}, num_outputs=len(linears))
    graph.insert_before(linears[0].multiply, [*nodes, split])
    for output, part in zip(outputs, split.outputs, strict=True):
        part.shape, part.type = output.shape, output.type
        if output.is_graph_output():  # which may be used inside the graph, too, and is found by its name
            part.name = output.name
        ir.convenience.replace_all_uses_with(output, part, replace_graph_outputs=True)
    graph.remove([*unused, *(node for linear in linears for node in (linear.add, linear.multiply) if node)], safe=True)


def _widened(value: ir.Value, width: int) -> ir.Shape | None:
    return None if value.shape is None else ir.Shape([*value.shape[:-1], width])


@dataclass(frozen=True)
class _Heads:
    """How the output of a layer, which has no other use, is split into heads: ``Transpose(Reshape(output))``."""

    reshape: ir.Node
    transpose: ir.Node
    outer: tuple[int, ...]
    """The shape without its last two sizes."""
    count: int
    width: int
    order: tuple[int, ...]

    @property
    def output(self) -> ir.Value:
        return self.transpose.outputs[0]


def _heads(output: ir.Value) -> _Heads | None:
    chain = []
    for kind in ("Reshape", "Transpose"):
        if not _only_use(output):
            return None
        ((node, _),) = output.uses()
        if node.op_type != kind:
            return None
        chain.append(node)
        output = node.outputs[0]
    reshape, transpose = chain
    shape, order = constant_of(reshape.inputs[1]), transpose.attributes.get_ints("perm")
    if shape is None or shape.size < 3 or -1 in shape[-2:]:
        return None
    return _Heads(reshape, transpose, tuple(shape[:-2].tolist()), int(shape[-2]), int(shape[-1]), tuple(order))


def _linear(multiply: ir.Node) -> _Linear | None:
    weight = constant_of(multiply.inputs[1])
    if weight is None or weight.ndim != 2:
        return None
    product = multiply.outputs[0]
    if _only_use(product):
        ((add, _),) = product.uses()
        if add.op_type == "Add" and (bias := constant_of(add.inputs[_bias_index(add)])) is not None and bias.ndim == 1:
            return _Linear(multiply, add, weight, bias)
    return _Linear(multiply, None, weight, None)


def _linear_behind(value: ir.Value) -> _Linear | None:
    """Find the layer whose output, reshaped or transposed, is ``value`` and has no other use."""
    node = value.producer()
    while node is not None and _only_use(value) and node.op_type in _MOVES and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer()
    if node is not None and node.op_type == "Add":
        makers = [entry.producer() for entry in node.inputs if entry is not None]
        products = [maker for maker in makers if maker is not None and maker.op_type == "MatMul"]
        node = products[0] if len(products) == 1 else None
    linear = _linear(node) if node is not None and node.op_type == "MatMul" else None
    return linear if linear is not None and linear.output is value and _only_use(value) else None


def _is_power_of_two(factor: np.ndarray) -> bool:
    return factor.size == 1 and bool(np.frexp(np.abs(factor.reshape(())))[0] == 0.5)


def _bias_index(add: ir.Node) -> int:
    return 0 if constant_of(add.inputs[0]) is not None else 1


def _only_use(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def _replace_constant(graph: ir.Graph, node: ir.Node, index: int, values: np.ndarray) -> None:
    name = f"{node.outputs[0].name}/scaled_{index}"
    node.replace_input_with(index, new_constant(graph, name, values.astype(np.float32)))
