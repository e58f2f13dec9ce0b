"""8-bit layers for CPUs, by ONNX Runtime's dynamic quantiser, with a scale for each output channel of the weights.

The weights have 7 bits and a sign, as :mod:`training.models.eight_bits` trains them: with 8 bits the products of CPUs
with AVX2 but without VNNI (before about 2019) saturate.
"""

import logging
import math
import tempfile
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from export.parameter_table import parameter_places
from export.passes.simplify import plain_products
from export.trace import TracedCaptioner
from training.models.captioner import Captioner
from training.models.eight_bits import EightBitLinear
from training.vision.weight_files import QUANTISED


@dataclass(frozen=True)
class EightBitLayers:
    """A traced captioner with layers in 8 bits."""

    traced: TracedCaptioner
    layers: tuple[str, ...]
    """Names from :func:`layers_of`."""
    share_of_weights: float
    """Their share of all layers' weights."""
    trained: bool
    """Whether the captioner learned in 8 bits."""

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
    """Put the layers in 8 bits whose weights ``captioner`` computes with in 8 bits; ``trained`` says whether it was
    trained so.
    """
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
            weight = numpy_helper.to_array(steps).astype(np.float32) * numpy_helper.to_array(scale)
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
    nodes = {node for name, (node, _) in _layers(split, prefix).items() if layers is None or name in layers}
    if not nodes:
        return model
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser recommends a preprocessing that has no effect here
    try:
        with tempfile.TemporaryDirectory() as folder:
            before, after = Path(folder, "before.onnx"), Path(folder, "after.onnx")
            onnx.save(split, str(before))
            quantize_dynamic(
                before, after, op_types_to_quantize=["MatMul"], nodes_to_quantize=sorted(nodes), per_channel=True,
                reduce_range=True, weight_type=QuantType.QInt8,
                extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
            )  # fmt: skip
            return onnx.load(str(after))
    finally:
        logging.getLogger().setLevel(level)
