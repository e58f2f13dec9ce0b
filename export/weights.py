"""Weights of large graphs as ONNX's external data: files of a temporary folder while a bundle is made.

protobuf limits a message to 2 GiB, and copying a graph copies the constants in it. Where the constants of a graph take
more than :data:`MOST_INSIDE`, the passes therefore return graphs that name files. The graphs of a bundle have all
weights inside again (:func:`export.bundle.write_graph`): an engine gets bytes, and opens no file that a bundle names.
"""

import functools
import gc
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from smart_caption_ros.files import sha256_of_bytes

SMALLEST = 1024
"""Values of the smallest constant that is a weight; others (biases, norms, shapes) stay where they are."""
MOST_INSIDE = 2**28
"""Most bytes of constants inside a graph; where there are more, all weights become files."""


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """Convert a model to protobuf, without the weights of a large one, which become files."""
    constants = [
        (value, tensor)
        for graph in model.graphs()
        for value in graph.initializers.values()
        if (tensor := value.const_value) is not None and not isinstance(tensor, ir.ExternalTensor)
    ]
    if sum(tensor.nbytes for _, tensor in constants) > MOST_INSIDE:
        for value, tensor in constants:
            if tensor.size >= SMALLEST:
                value.const_value = _as_file(tensor)
        gc.collect()  # graphs refer to themselves; those of earlier passes have mapped their files
    return ir.to_proto(model)


def without_unused(model: ir.Model) -> onnx.ModelProto:
    """Remove the nodes and constants that nothing uses, in place, and convert a model as :func:`to_proto` does."""
    RemoveUnusedNodesPass()(model)
    return to_proto(model)


def values_of(tensor: onnx.TensorProto) -> np.ndarray:
    """Read a constant of a graph, from its file if it has one."""
    return ir.serde.deserialize_tensor(tensor).numpy()


def content_of(tensor: onnx.TensorProto) -> tuple[Any, ...]:
    """Return a key that is the same for constants of equal type, shape and values."""
    digests = [Path(entry.value).name for entry in tensor.external_data if entry.key == "location"]
    return tensor.data_type, *tensor.dims, *(digests or [sha256_of_bytes(values_of(tensor).tobytes())])


@functools.cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Make the folder of the files, which is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="smart_caption_export_")


def _as_file(tensor: ir.TensorProtocol) -> ir.ExternalTensor:
    content = tensor.tobytes()
    path = Path(_folder().name, sha256_of_bytes(content))
    if not path.exists():
        path.write_bytes(content)
    return ir.ExternalTensor(
        path, None, None, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=str(tensor.name)
    )
