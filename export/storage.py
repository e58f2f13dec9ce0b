"""How weights are stored, whatever they are computed in: as float16 where that is enough, and once for all graphs."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

_SMALLEST = 1024  # values; smaller tensors (biases, norms, constants) are not worth a Cast or a place in another file
_LARGEST = 65504.0  # the largest float16; a tensor with more in it (a mask of -1e9, say) stays as it is
_ALIGNMENT = 64  # bytes; a vector of the widest registers


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
    for graph in _graphs(model.graph):
        casts = []
        for tensor in graph.initializer:
            if tensor.data_type != TensorProto.FLOAT:
                continue
            values = numpy_helper.to_array(tensor)
            if values.size < _SMALLEST or np.abs(values).max() > _LARGEST:
                continue
            casts.append(helper.make_node("Cast", [f"{tensor.name}/stored"], [tensor.name], to=TensorProto.FLOAT))
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{tensor.name}/stored"))
        nodes = [*casts, *graph.node]
        del graph.node[:]
        graph.node.extend(nodes)


def share_weights(models: Iterable[onnx.ModelProto], path: Path) -> None:
    """Move the weights of ``models`` to the file ``path``, in place, each distinct tensor once (ONNX external data).

    The graphs then name the file alone, without a folder: it belongs beside them.
    """
    places: dict[bytes, tuple[int, int]] = {}
    with path.open("wb") as stream:
        for model in models:
            for graph in _graphs(model.graph):
                for tensor in graph.initializer:
                    values = numpy_helper.to_array(tensor)
                    if values.size < _SMALLEST:
                        continue
                    content = values.tobytes()
                    digest = hashlib.sha256(content).digest()
                    if digest not in places:
                        stream.write(bytes(-stream.tell() % _ALIGNMENT))
                        places[digest] = (stream.tell(), len(content))
                        stream.write(content)
                    offset, length = places[digest]
                    _point_to(tensor, {"location": path.name, "offset": str(offset), "length": str(length)})


def _point_to(tensor: TensorProto, place: Mapping[str, str]) -> None:
    kept = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    kept.data_location = TensorProto.EXTERNAL
    for key, value in place.items():
        kept.external_data.add(key=key, value=value)
    tensor.CopyFrom(kept)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and the bodies of its loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
