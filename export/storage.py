"""Storage of weights that are computed in float32: as float16 or int8, and once for all graphs."""

import math
from collections.abc import Sequence

import numpy as np
import onnx
import torch
from onnx import TensorProto, compose, helper, numpy_helper
from torch import nn

from smart_caption_ros.files import sha256_of_bytes
from training.vision.weight_files import with_bodies

_SMALLEST = 1024  # values; smaller tensors (biases, norms, constants) stay as they are
_STEPS = 127  # of int8 on either side of 0
_REDUCED_STEPS = 64  # of the weights that are computed with in 8 bits (export.passes.int8)
_LARGEST = 65504.0  # of float16; a tensor with larger values (-1e9 in a mask) stays as it is


def round_to_float16(module: nn.Module) -> None:
    """Round the tensors that :func:`store_as_float16` will store, in place, to the values that it stores."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dtype == torch.float32 and tensor.numel() >= _SMALLEST and tensor.abs().max() <= _LARGEST:
                tensor.copy_(tensor.half().float())


def round_to_int8(module: nn.Module) -> None:
    """Round the weights of the convolutions across channels, in place, to the values that :func:`store_as_int8` stores.

    Each channel of the wider side has a scale, because after a depthwise convolution the input channels differ more
    than the output channels. Depthwise convolutions stay as they are: they are small and sensitive.
    """
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d) and layer.groups == 1 and layer.weight.numel() >= _SMALLEST:
                weight = layer.weight.numpy()
                scale = _scale(weight, axis=0 if len(weight) > weight.shape[1] else 1)
                layer.weight.copy_(torch.from_numpy((weight / scale).round() * scale))


def store_as_int8(model: onnx.ModelProto) -> None:
    """Store weights that are rounded to 8 bits, in place, as int8 with a scale for each channel (DequantizeLinear):
    those of convolutions that :func:`round_to_int8` has rounded, and those of products that
    :func:`export.passes.int8.with_rounded_weights` has. Others stay as they are.

    The engine converts them to float32 when it loads the graph, as for :func:`store_as_float16`.
    """
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    layers = [node for node in model.graph.node if node.op_type in ("Conv", "MatMul")]
    nodes = []
    for name, operator in dict.fromkeys((node.input[1], node.op_type) for node in layers):
        tensor = tensors.get(name)
        if tensor is None or tensor.data_type != TensorProto.FLOAT or math.prod(tensor.dims) < _SMALLEST:
            continue
        if operator == "MatMul" and len(tensor.dims) != 2:
            continue
        weight = numpy_helper.to_array(tensor)
        for axis, count in ((0, _STEPS), (1, _STEPS)) if operator == "Conv" else ((1, _REDUCED_STEPS),):
            scale = _scale(weight, axis, count)
            steps = weight / scale
            if np.abs(steps - steps.round()).max() < 1e-3:
                stored, scales = f"{name}/stored", f"{name}/scale"
                tensor.CopyFrom(numpy_helper.from_array(steps.round().astype(np.int8), stored))
                model.graph.initializer.append(numpy_helper.from_array(scale.reshape(-1), scales))
                nodes.append(helper.make_node("DequantizeLinear", [stored, scales], [name], axis=axis))
                break
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _scale(weight: np.ndarray, axis: int, steps: int = _STEPS) -> np.ndarray:
    """Compute the step of each channel of ``axis`` of a weight, in a shape that divides it."""
    others = tuple(other for other in range(weight.ndim) if other != axis)
    largest = np.abs(weight).max(axis=others, keepdims=True)
    return (np.maximum(largest, 1e-12) / steps).astype(np.float32)


def store_as_float16(model: onnx.ModelProto) -> None:
    """Store float32 weights as float16 followed by a Cast, in place, in the graph and in the bodies of its loops.

    The engine folds the Casts when it loads the graph, so computing stays in float32 and takes no longer.
    """
    for graph in with_bodies(model.graph):
        casts = []
        scales = _scales_of_integers(graph)
        for tensor in graph.initializer:
            if tensor.data_type != TensorProto.FLOAT or tensor.name in scales:
                continue
            values = numpy_helper.to_array(tensor)
            if values.size < _SMALLEST or np.abs(values).max() > _LARGEST:
                continue
            casts.append(helper.make_node("Cast", [f"{tensor.name}/stored"], [tensor.name], to=TensorProto.FLOAT))
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{tensor.name}/stored"))
        nodes = [*casts, *graph.node]
        del graph.node[:]
        graph.node.extend(nodes)


def _scales_of_integers(graph: onnx.GraphProto) -> set[str]:
    """Name the scales of stored and of computed integers, which stay in float32."""
    of_inputs = {node.output[1] for node in graph.node if node.op_type == "DynamicQuantizeLinear"}
    scales = {node.input[1] for node in graph.node if node.op_type == "DequantizeLinear"}
    for node in graph.node:
        if node.op_type == "Mul" and not of_inputs.isdisjoint(node.input):
            scales.update(node.input)
    return scales


def share_weights(models: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """Move the weights of ``models`` to a model that has nothing else, in place; those of the first serve the others.

    The bytes of a model and of the weights are the whole model: protocol buffers merge messages that follow each other.
    Weights in the body of a loop become values of the graph around it. The first model keeps all of its names, by
    which its parameters are found (:mod:`export.parameter_table`).
    """
    weights = onnx.ModelProto()
    names: dict[tuple[int, tuple[int, ...], str], str] = {}
    for place, model in enumerate(models):
        if place:  # so that no name of this model is that of another one's weight
            compose.add_prefix(model, f"{place}/", rename_inputs=False, rename_outputs=False, inplace=True)
        moved = {}
        for graph in with_bodies(model.graph):
            for tensor in list(graph.initializer):
                values = numpy_helper.to_array(tensor)
                if values.size < _SMALLEST:
                    continue
                key = content_of(tensor)
                if not place or key not in names:
                    names[key] = tensor.name
                    weights.graph.initializer.append(tensor)
                moved[tensor.name] = names[key] if place else tensor.name
                graph.initializer.remove(tensor)
        for graph in with_bodies(model.graph):
            for node in graph.node:
                node.input[:] = [moved.get(name, name) for name in node.input]
    return weights


def content_of(tensor: TensorProto) -> tuple[int, tuple[int, ...], str]:
    """Return what two tensors of the same values have in common."""
    return tensor.data_type, tuple(tensor.dims), sha256_of_bytes(numpy_helper.to_array(tensor).tobytes())
