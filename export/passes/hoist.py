"""Move nodes that depend on the image alone from the step, where they run for every word, to the start.

Examples are inverted masks and the size of the batch: even such a small node takes ONNX Runtime a microsecond or two.
"""

import copy
from collections.abc import Sequence

import onnx
from onnx import ValueInfoProto

_PREFIX = "once/"
_STAYING = ("Transpose",)
"""Operators that stay in the step: ONNX Runtime computes them as part of the product that takes their result."""


def hoist(
    start: onnx.ModelProto, step: onnx.ModelProto, encoded: Sequence[str]
) -> tuple[onnx.ModelProto, onnx.ModelProto, tuple[str, ...]]:
    """Move nodes of the step that depend on encoded values and constants alone to the start.

    Returns:
        Both graphs, and the names of the encoded values that the step takes now.
    """
    new_start, new_step = copy.deepcopy(start), copy.deepcopy(step)
    graph = new_step.graph
    inferred = onnx.shape_inference.infer_shapes(step).graph
    values = {value.name: value for value in (*inferred.input, *inferred.value_info)}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {value.name for value in graph.output}
    available = set(encoded)
    moved, kept = [], []
    for node in graph.node:
        inputs = [name for name in node.input if name]
        once = (
            node.op_type not in _STAYING
            and bool(inputs)
            and all(name in available or name in constants for name in inputs)
        )
        if once and not outputs & set(node.output) and all(name in values for name in node.output):
            available |= set(node.output)
            moved.append(node)
        else:
            kept.append(node)
    needed = [name for name in available if any(name in node.input for node in kept)]
    needed.sort(key=[*encoded, *(name for node in moved for name in node.output)].index)
    names = {name: name if name in encoded else f"{_PREFIX}{name}" for name in available}
    shared = dict.fromkeys(name for node in moved for name in node.input if name in constants)
    for name in shared:
        tensor = new_start.graph.initializer.add()
        tensor.CopyFrom(constants[name])
        tensor.name = f"{_PREFIX}{name}"
        names[name] = tensor.name
    for node in moved:
        added = new_start.graph.node.add()
        added.CopyFrom(node)
        added.name = f"{_PREFIX}{node.name or node.output[0]}"
        for field in (added.input, added.output):
            field[:] = [names.get(name, name) for name in field]
    known = {value.name for value in new_start.graph.output}
    new_start.graph.output.extend(_renamed(values[name], names[name]) for name in needed if names[name] not in known)
    # Outputs that the step took before but no longer takes.
    unused = {name for name in encoded if name not in needed}
    for value in [value for value in new_start.graph.output if value.name in unused]:
        new_start.graph.output.remove(value)
    for value in [value for value in graph.input if value.name in encoded]:
        graph.input.remove(value)
    graph.input.extend(_renamed(values[name], names[name]) for name in needed)
    del graph.node[:]
    for node in kept:
        added = graph.node.add()
        added.CopyFrom(node)
        added.input[:] = [names[name] if name in available else name for name in node.input]
    return new_start, new_step, tuple(names[name] for name in needed)


def _renamed(value: ValueInfoProto, name: str) -> ValueInfoProto:
    renamed = copy.deepcopy(value)
    renamed.name = name
    return renamed
