"""How weights are stored in a graph, whatever they are computed in."""

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

_SMALLEST = 1024  # values; smaller tensors (biases, norms, constants) are not worth a Cast
_LARGEST = 65504.0  # the largest float16; a tensor with more in it (a mask of -1e9, say) stays as it is


def round_to_float16(module: nn.Module) -> None:
    """Round in place, to the values that :func:`store_as_float16` keeps, the tensors that it will store."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dtype == torch.float32 and tensor.numel() >= _SMALLEST and tensor.abs().max() <= _LARGEST:
                tensor.copy_(tensor.half().float())


def store_as_float16(model: onnx.ModelProto) -> None:
    """Keep float32 weights as float16 followed by a Cast, in place, in the graph and in the bodies of its loops.

    The engine folds the Casts when it loads the graph, so that computing stays in float32 and as fast.
    """
    _store_graph(model.graph)


def _store_graph(graph: onnx.GraphProto) -> None:
    casts = []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or values.size < _SMALLEST or np.abs(values).max() > _LARGEST:
            continue
        halves = values.astype(np.float16)
        casts.append(helper.make_node("Cast", [f"{tensor.name}/float16"], [tensor.name], to=TensorProto.FLOAT))
        tensor.CopyFrom(numpy_helper.from_array(halves, f"{tensor.name}/float16"))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _store_graph(attribute.g)
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
