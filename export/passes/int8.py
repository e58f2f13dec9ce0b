"""8-bit layers for CPUs, as ONNX Runtime's dynamic quantiser makes them, with a scale for each output channel of the
weights.

The weights have 7 bits and a sign, as :mod:`training.models.eight_bits` trains them: with 8 bits the products of CPUs
with AVX2 but without VNNI (before about 2019) saturate.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from export.parameter_table import parameter_places
from export.passes.constants import constant_of, new_constant
from export.passes.simplify import plain_products
from export.storage import REDUCED_STEPS, channel_scales
from export.trace import TracedCaptioner
from export.weights import values_of, without_unused
from training.models.captioner import Captioner
from training.models.eight_bits import EightBitLinear
from training.vision.weight_files import QUANTISED

_PARTS = (*QUANTISED, "_zero_point")
"""Suffixes of the names of the three values that replace a value in 8 bits."""


@dataclass(frozen=True)
class EightBitLayers:
    """A traced captioner with layers in 8 bits."""

    traced: TracedCaptioner
    layers: tuple[str, ...]
    """Names from :func:`layers_of`."""
    share_of_weights: float
    """Their share of all layers' weights."""
    trained: bool
    """Whether the captioner was trained in 8 bits."""

    def report(self) -> dict[str, Any]:
        """Describe the layers for the manifest."""
        return {
            "weights": "7bit", "trained": self.trained, "int8_layers": list(self.layers),
            "layers": len(self.layers), "share_of_weights": round(self.share_of_weights, 3),
        }  # fmt: skip


def layers_of(traced: TracedCaptioner) -> dict[str, int]:
    """List the layers that can be quantised and their numbers of weights, in topological order.

    A name consists of the graph, the place in it and the shape: ``step/3 512x2048``.
    """
    layers = {**_layers(plain_products(traced.start), "start"), **_layers(plain_products(traced.step), "step")}
    return {name: math.prod(shape) for name, (_, shape) in layers.items()}


def to_int8(traced: TracedCaptioner, layers: Collection[str]) -> TracedCaptioner:
    """Put ``layers``, names from :func:`layers_of`, of a traced captioner in 8 bits."""
    start, step = (quantise_products(getattr(traced, part), part, layers) for part in ("start", "step"))
    return replace(traced, start=start, step=step)


def as_computed(traced: TracedCaptioner, captioner: Captioner, *, trained: bool) -> EightBitLayers:
    """Put in 8 bits the layers that ``captioner`` computes in 8 bits; ``trained`` says whether it was trained so."""
    computed = {f"{name}.weight" for name, layer in captioner.named_modules() if isinstance(layer, EightBitLinear)}
    # The graphs may have joined layers: all weights of a constant must be computed in 8 bits.
    held: dict[str, dict[int, int]] = defaultdict(dict)
    traced = replace(traced, start=plain_products(traced.start), step=plain_products(traced.step))
    for name, place in parameter_places(captioner, traced):
        if name in computed:
            held[place.constant][place.offset] = captioner.get_parameter(name).numel()
    sizes = layers_of(traced)
    layers = tuple(
        name
        for prefix, piece in (("start", traced.start), ("step", traced.step))
        for name, (node, shape) in _layers(piece, prefix).items()
        for weight in (other.input[1] for other in piece.graph.node if other.name == node)
        if sum(held[f"{prefix}/{weight}"].values()) == math.prod(shape)
    )
    share = sum(sizes[name] for name in layers) / sum(sizes.values())
    return EightBitLayers(to_int8(traced, layers), layers, share, trained)


def with_rounded_weights(traced: TracedCaptioner, quantised: TracedCaptioner) -> TracedCaptioner:
    """Give the layers of a traced captioner the values that their weights have in 8 bits; they compute in float32."""
    start, step = (_with_rounded_weights(getattr(traced, part), getattr(quantised, part)) for part in ("start", "step"))
    return replace(traced, start=start, step=step)


def _with_rounded_weights(piece: onnx.ModelProto, quantised: onnx.ModelProto) -> onnx.ModelProto:
    stored = {tensor.name: tensor for tensor in quantised.graph.initializer}
    rounded = plain_products(piece)
    for tensor in rounded.graph.initializer:
        steps, scale = (stored.get(f"{tensor.name}{suffix}") for suffix in QUANTISED)
        if steps is not None and scale is not None:
            weight = values_of(steps).astype(np.float32) * values_of(scale)
            tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))
    return rounded


def _layers(piece: onnx.ModelProto, prefix: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the node name and weight shape of each layer, by its name; ``piece`` is of :func:`plain_products`."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in piece.graph.initializer}
    layers = [
        (node.name, shapes[node.input[1]])
        for node in piece.graph.node
        if node.op_type == "MatMul" and len(shapes.get(node.input[1], ())) == 2
    ]
    return {f"{prefix}/{place} {'x'.join(map(str, layer[1]))}": layer for place, layer in enumerate(layers)}


def quantise_products(
    model: onnx.ModelProto, prefix: str = "vision", layers: Collection[str] | None = None
) -> onnx.ModelProto:
    """Compute products with constant matrices in 8 bits, such as the layers of a vision transformer.

    Args:
        model: the graph, in float32; one without such products, such as a convolutional network's, stays as it is.
        prefix: of the names of layers.
        layers: names of the products; None: all.
    """
    split = plain_products(model)
    chosen = {node for name, (node, _) in _layers(split, prefix).items() if layers is None or name in layers}
    if not chosen:
        return model
    converted = ir.from_proto(split)
    quantised: dict[ir.Value, Sequence[ir.Value]] = {}
    for product in [node for node in converted.graph if node.name in chosen]:
        _quantise(converted.graph, product, quantised)
    return without_unused(converted)


def _quantise(graph: ir.Graph, product: ir.Node, quantised: dict[ir.Value, Sequence[ir.Value]]) -> None:
    """Replace a product by one of integers, written as the nodes that ONNX Runtime fuses into one.

    Args:
        graph: the graph of the product.
        product: with a constant matrix.
        quantised: integers, scale and zero point of each value that is already quantised.
    """
    x, weight = product.inputs
    matrix = constant_of(weight)
    assert x is not None
    assert weight is not None
    assert matrix is not None
    if x not in quantised:
        node = ir.node("DynamicQuantizeLinear", [x], num_outputs=len(_PARTS))
        for output, part in zip(node.outputs, _PARTS, strict=True):
            output.name = f"{x.name}{part}"
        graph.insert_before(product, node)
        quantised[x] = node.outputs
    if weight not in quantised:
        scales = channel_scales(matrix, axis=1, steps=REDUCED_STEPS)
        steps = np.rint(matrix / scales).astype(np.int8)
        constants = zip(_PARTS, (steps, scales.reshape(-1), np.zeros(len(scales.T), np.int8)), strict=True)
        quantised[weight] = [new_constant(graph, f"{weight.name}{part}", values) for part, values in constants]
    (integers, scale, zero), (steps_of_weight, scale_of_weight, zero_of_weight) = quantised[x], quantised[weight]
    sums = ir.node("MatMulInteger", [integers, steps_of_weight, zero, zero_of_weight])
    floats = ir.node("Cast", sums.outputs, {"to": int(ir.DataType.FLOAT)})
    factors = ir.node("Mul", [scale, scale_of_weight])
    scaled = ir.node("Mul", [floats.outputs[0], factors.outputs[0]])
    graph.insert_before(product, [sums, floats, factors, scaled])
    (before,), (after,) = product.outputs, scaled.outputs
    after.type, after.shape = before.type, before.shape
    ir.convenience.replace_all_uses_with(before, after, replace_graph_outputs=True)
    graph.remove(product, safe=True)
    after.name = before.name
