"""Write float16 into a graph, for engines that compute in the types of the graph (TensorRT, CUDA).

Layers (products with their biases and activations) and operators that only move their results are in float16.
Everything else stays in float32: LayerNorm, softmax, sums of scores, top-k, and any constant that float16 cannot hold.
"""

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir

from export.passes.constants import new_constant
from export.trace import TracedCaptioner
from export.weights import without_unused

_LAYERS = ("Conv", "Gemm", "MatMul")
_MOVES = ("Concat", "Expand", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze")
_FOLLOWERS = ("Add", "Clip", "Mul", "Relu")  # in float16 when all their inputs are
_LARGEST = float(np.finfo(np.float16).max)


def to_float16(traced: TracedCaptioner) -> TracedCaptioner:
    """Put the layers of a captioner in float16, and those of their results that are encoded or carried."""
    _, computed = write_float16(traced.start, keep_outputs=True)
    encoded = computed & set(traced.encoded)
    carried = {value.name for value in traced.step.graph.input} & set(traced.carried)
    while True:  # what a step does not return in float16 cannot be carried in float16
        _, computed = write_float16(traced.step, half_inputs=encoded | carried, keep_outputs=True)
        kept = {name for name in carried if f"next_{name}" in computed}
        if kept == carried:
            break
        carried = kept
    firsts, nexts = ({f"{prefix}_{name}": name in carried for name in traced.carried} for prefix in ("first", "next"))
    start, _ = write_float16(traced.start, half_outputs={**firsts, **dict.fromkeys(encoded, True)})
    step, _ = write_float16(traced.step, half_inputs=encoded | carried, half_outputs=nexts)
    return replace(traced, start=start, step=step)


def write_float16(
    model: onnx.ModelProto,
    *,
    half_inputs: Set[str] = frozenset(),
    half_outputs: Mapping[str, bool] | None = None,
    keep_outputs: bool = False,
) -> tuple[onnx.ModelProto, set[str]]:
    """Copy a graph with its layers in float16.

    Args:
        half_inputs: inputs that become float16.
        half_outputs: outputs that become float16 (True) or stay float32 (False), whatever they are computed in; others
            are cast to float32.
        keep_outputs: leave outputs that are computed in float16 as they are, instead of casting them to float32.

    Returns:
        The graph, and the names of its float16 outputs.
    """
    converted = ir.from_proto(onnx.shape_inference.infer_shapes(model))
    writer = _Writer(converted.graph)
    for value in converted.graph.inputs:
        if value.name in half_inputs and _is_float(value):
            value.type = ir.TensorType(ir.DataType.FLOAT16)
    for node in list(converted.graph):
        writer.convert(node)
    halves = set()
    for index, value in enumerate(converted.graph.outputs):
        name = str(value.name)
        if not _is_float(value):
            continue
        half = (half_outputs or {}).get(name, keep_outputs and value.dtype == ir.DataType.FLOAT16)
        wanted = ir.DataType.FLOAT16 if half else ir.DataType.FLOAT
        if half:
            halves.add(name)
        if value.dtype != wanted:
            cast = writer.cast(value, wanted)
            value.name, cast.name = f"{name}/{value.dtype.name.lower() if value.dtype else ''}", name
            converted.graph.outputs[index] = cast
    converted.graph.sort()
    return without_unused(converted), halves


class _Writer:
    """Changes the types of one graph, node by node in topological order."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._casts: dict[tuple[ir.Value, ir.DataType], ir.Value] = {}

    def convert(self, node: ir.Node) -> None:
        floats = [value for value in node.inputs if value is not None and _is_float(value)]
        computed = [value for value in floats if value.const_value is None]
        halves = [value for value in computed if value.dtype == ir.DataType.FLOAT16]
        lower = (
            node.op_type in _LAYERS
            or (node.op_type in _MOVES and bool(halves))
            or (node.op_type in _FOLLOWERS and bool(halves) and len(halves) == len(computed))
        )
        fits = all(_fits(value) for value in floats)
        wanted = ir.DataType.FLOAT16 if lower and fits else ir.DataType.FLOAT
        for index, value in enumerate(node.inputs):
            if value is not None and _is_float(value) and value.dtype != wanted and node.op_type != "Cast":
                node.replace_input_with(index, self.cast(value, wanted))
        for output in node.outputs:
            if _is_float(output) and node.op_type != "Cast":
                output.type = ir.TensorType(wanted)

    def cast(self, value: ir.Value, wanted: ir.DataType) -> ir.Value:
        """Convert ``value`` to another precision, once for all its uses; a constant is converted at once."""
        if (value, wanted) not in self._casts:
            self._casts[value, wanted] = self._new_cast(value, wanted)
        return self._casts[value, wanted]

    def _new_cast(self, value: ir.Value, wanted: ir.DataType) -> ir.Value:
        name = f"{value.name}/{wanted.name.lower()}"
        if value.const_value is not None and value.producer() is None:
            return new_constant(self._graph, name, value.const_value.numpy().astype(wanted.numpy()))
        node = ir.node("Cast", [value], {"to": int(wanted)})
        output = node.outputs[0]
        output.name, output.shape, output.type = name, value.shape, ir.TensorType(wanted)
        self._graph.append(node)
        return output


def _is_float(value: ir.Value) -> bool:
    return value.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)


def _fits(value: ir.Value) -> bool:
    return value.const_value is None or bool(np.abs(value.const_value.numpy()).max(initial=0) <= _LARGEST)
