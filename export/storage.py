"""Storage of weights that are computed in float32: as float16 or int8, and once for all graphs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, compose, helper, numpy_helper
from torch import nn

from export.weights import SMALLEST, content_of, values_of
from training.vision.weight_files import with_bodies

_STEPS = 127  # of int8 on either side of 0
REDUCED_STEPS = 64
"""Steps on either side of 0 of the weights of 8-bit products (:mod:`export.passes.int8`)."""
_LARGEST = 65504.0  # of float16; a tensor with larger values (-1e9 in a mask) stays as it is


def round_to_float16(module: nn.Module) -> None:
    """Round the tensors that :func:`store_as_float16` will store, in place, to the values that it stores."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dtype == torch.float32 and tensor.numel() >= SMALLEST and tensor.abs().max() <= _LARGEST:
                tensor.copy_(tensor.half().float())


def round_to_int8(module: nn.Module) -> None:
    """Round the weights of the convolutions across channels, in place, to the values that :func:`store_as_int8` stores.

    Each channel of the wider side has a scale, because after a depthwise convolution the input channels differ more
    than the output channels. Depthwise convolutions stay as they are: they are small and sensitive.
    """
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d) and layer.groups == 1 and layer.weight.numel() >= SMALLEST:
                weight = layer.weight.numpy()
                scale = channel_scales(weight, axis=0 if len(weight) > weight.shape[1] else 1)
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
        if tensor is None or tensor.data_type != TensorProto.FLOAT or math.prod(tensor.dims) < SMALLEST:
            continue
        if operator == "MatMul" and len(tensor.dims) != 2:
            continue
        weight = values_of(tensor)
        for axis, count in ((0, _STEPS), (1, _STEPS)) if operator == "Conv" else ((1, REDUCED_STEPS),):
            scale = channel_scales(weight, axis, count)
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


def channel_scales(weight: np.ndarray, axis: int, steps: int = _STEPS) -> np.ndarray:
    """Compute the step of each channel of ``axis`` of a weight, in a shape that divides it."""
    others = tuple(other for other in range(weight.ndim) if other != axis)
    largest = np.abs(weight).max(axis=others, keepdims=True)
    return (np.maximum(largest, 1e-12) / steps).astype(np.float32)


def store_as_float16(model: onnx.ModelProto) -> None:
    """Store float32 weights as float16 followed by a Cast, in place.

    The engine folds the Casts when it loads the graph, so computing stays in float32 and takes no longer.
    """
    casts = []
    scales = _scales_of_integers(model.graph)
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or tensor.name in scales or math.prod(tensor.dims) < SMALLEST:
            continue
        values = values_of(tensor)
        if np.abs(values).max() > _LARGEST:
            continue
        casts.append(helper.make_node("Cast", [f"{tensor.name}/stored"], [tensor.name], to=TensorProto.FLOAT))
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{tensor.name}/stored"))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _scales_of_integers(whole: onnx.GraphProto) -> set[str]:
    """Name the scales of stored and of computed integers, which stay in float32."""
    nodes = [node for graph in with_bodies(whole) for node in graph.node]
    of_inputs = {node.output[1] for node in nodes if node.op_type == "DynamicQuantizeLinear"}
    scales = {node.input[1] for node in nodes if node.op_type == "DequantizeLinear"}
    for node in nodes:
        if node.op_type == "Mul" and not of_inputs.isdisjoint(node.input):
            scales.update(node.input)
    return scales


def share_weights(models: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """Move the weights of ``models`` to a model of their own, in place; the others use equal weights of the first.

    The bytes of a model followed by those of the weights are the whole model: protobuf merges concatenated messages.
    The first model keeps all of its names, by which its parameters are found (:mod:`export.parameter_table`).
    """
    weights = onnx.ModelProto()
    names: dict[tuple[Any, ...], str] = {}
    for place, model in enumerate(models):
        if place:  # so that no name of this model is that of another one's weight
            compose.add_prefix(model, f"{place}/", rename_inputs=False, rename_outputs=False, inplace=True)
        moved, kept = {}, []
        for tensor in model.graph.initializer:
            if math.prod(tensor.dims) < SMALLEST:
                kept.append(tensor)
                continue
            key = content_of(tensor)
            if not place or key not in names:
                names[key] = tensor.name
                weights.graph.initializer.append(tensor)
            moved[tensor.name] = names[key] if place else tensor.name
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        for graph in with_bodies(model.graph):
            for node in graph.node:
                node.input[:] = [moved.get(name, name) for name in node.input]
    return weights
