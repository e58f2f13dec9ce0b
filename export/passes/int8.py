"""8-bit layers for CPUs, by ONNX Runtime's dynamic quantiser, with a scale for each output channel of the weights.

:func:`choose` measures which layers tolerate it and keeps in float32 those that change captions most. If the projection
onto the vocabulary is in 8 bits, the likeliest words are computed once more in float32
(:mod:`export.passes.shortlist`). A captioner that was trained in 8 bits (:mod:`training.models.eight_bits`) needs
neither: :func:`as_computed` puts the layers in 8 bits that it computes so.
"""

import logging
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tqdm import tqdm

from export.parameter_table import parameter_places
from export.passes.shortlist import projection_of, with_shortlist
from export.passes.simplify import plain_products
from export.trace import TracedCaptioner
from training.models.captioner import Captioner
from training.models.eight_bits import EightBitLinear
from training.vision.weight_files import QUANTISED

WEIGHTS = {"u8": (QuantType.QUInt8, False), "7bit": (QuantType.QInt8, True), "s8": (QuantType.QInt8, False)}
"""Quantiser settings by kind of weights. Signed weights run fastest; with all 8 bits they saturate in the additions of
CPUs with AVX2 but without VNNI (before about 2019), with 7 they do not."""

TRAINED_WEIGHTS = "7bit"
"""The weights of a captioner that was trained in 8 bits, and of a vision graph."""

IDENTICAL, CIDER_LOSS = 0.99, 0.005
"""Acceptance criterion: smallest share of identical captions and largest loss of CIDEr-D (of 10)."""

Captions = Sequence[tuple[list[int], float]]
"""Word ids and score of each image's best caption."""
Describe = Callable[[TracedCaptioner], Iterable[tuple[list[int], float]]]
"""Captions of images by a traced captioner, one after the other; the caller may stop early."""


@dataclass(frozen=True)
class Trial:
    """Result of one choice of layers."""

    layers: tuple[str, ...]
    """Layers in 8 bits."""
    share_of_weights: float
    """Their share of all layers' weights."""
    images: int
    """Images that were captioned; fewer than all if too many captions had changed by then."""
    identical: float
    """Share of the captions that are identical to those of float32."""
    cider_loss: float | None
    """None if too many captions had changed."""

    @property
    def passes(self) -> bool:
        return self.identical >= IDENTICAL and self.cider_loss is not None and self.cider_loss <= CIDER_LOSS

    def __str__(self) -> str:
        lost = "" if self.cider_loss is None else f", CIDEr loss {self.cider_loss:+.4f}"
        return (
            f"{len(self.layers)} layers in 8 bits ({self.share_of_weights:.0%} of the weights): "
            f"{self.identical:.1%} of {self.images} captions identical{lost}"
        )


@dataclass(frozen=True)
class Choice:
    """The layers that were put in 8 bits, and all measurements."""

    traced: TracedCaptioner
    weights: str
    chosen: Trial
    trials: Sequence[Trial]
    damage: Mapping[str, float] = field(default_factory=dict)
    """Mean change of a caption's score with that layer alone in 8 bits, natural logarithm."""
    trained: bool | None = None
    """Whether the layers were trained in 8 bits; None if they were chosen by measurements."""

    def report(self) -> dict[str, Any]:
        """Summarise the measurements for the manifest."""
        if self.trained is not None:
            return {
                "weights": self.weights, "trained": self.trained, "int8_layers": list(self.chosen.layers),
                "layers": len(self.chosen.layers), "share_of_weights": round(self.chosen.share_of_weights, 3),
            }  # fmt: skip

        def facts(trial: Trial) -> dict[str, Any]:
            return {
                "layers": len(trial.layers), "share_of_weights": round(trial.share_of_weights, 3),
                "images": trial.images, "identical_captions": round(trial.identical, 4),
                "cider_loss": None if trial.cider_loss is None else round(trial.cider_loss, 4),
            }  # fmt: skip

        return {
            "weights": self.weights, "int8_layers": list(self.chosen.layers), **facts(self.chosen),
            "damage_of_each_layer": {name: round(value, 5) for name, value in self.damage.items()},
            "trials": [facts(trial) for trial in self.trials],
        }  # fmt: skip


def layers_of(traced: TracedCaptioner) -> dict[str, int]:
    """List the layers that can be quantised and their numbers of weights, in topological order.

    A name consists of the graph, the place in it and the shape: ``step/3 512x2048``.
    """
    layers = {**_layers(plain_products(traced.start), "start"), **_layers(plain_products(traced.step), "step")}
    return {f"{place} {'x'.join(map(str, shape))}": int(np.prod(shape)) for place, (_, shape) in layers.items()}


def to_int8(
    traced: TracedCaptioner, layers: Collection[str], weights: str, *, trained: bool = False
) -> TracedCaptioner:
    """Put ``layers`` of a traced captioner in 8 bits.

    Args:
        traced: the captioner in float32.
        layers: names from :func:`layers_of`.
        weights: a key of :data:`WEIGHTS`.
        trained: the layers were trained in 8 bits: they are quantised as they are, without measures against the loss.
    """
    return replace(
        traced,
        start=_quantise(traced.start, "start", layers, weights, trained),
        step=_quantise(traced.step, "step", layers, weights, trained),
    )


def as_computed(traced: TracedCaptioner, captioner: Captioner, *, trained: bool) -> Choice:
    """Put the layers in 8 bits whose weights ``captioner`` computes with in 8 bits; ``trained`` says whether it was
    trained so. The weights are signed, as in training.
    """
    computed = {f"{name}.weight" for name, layer in captioner.named_modules() if isinstance(layer, EightBitLinear)}
    # The graphs may have joined layers: all weights of a constant must be computed in 8 bits.
    held: dict[str, dict[int, int]] = defaultdict(dict)
    traced = traced.with_precision(plain_products)
    for name, place in parameter_places(captioner, traced):
        if name in computed:
            held[place.constant][place.offset] = captioner.get_parameter(name).numel()
    sizes = layers_of(traced)
    layers = [
        f"{place} {'x'.join(map(str, shape))}"
        for prefix, piece in (("start", traced.start), ("step", traced.step))
        for place, (node, shape) in _layers(piece, prefix).items()
        if sum(held[f"{prefix}/{_weight_of(piece, node)}"].values()) == math.prod(shape)
    ]
    share = sum(sizes[name] for name in layers) / sum(sizes.values())
    chosen = Trial(tuple(layers), share, 0, 1.0, None)
    return Choice(to_int8(traced, layers, TRAINED_WEIGHTS, trained=True), TRAINED_WEIGHTS, chosen, (), trained=trained)


def _weight_of(piece: onnx.ModelProto, name: str) -> str:
    return next(str(node.input[1]) for node in piece.graph.node if node.name == name)


def with_rounded_weights(traced: TracedCaptioner, quantised: TracedCaptioner) -> TracedCaptioner:
    """Give the layers of a traced captioner the values that their weights have in 8 bits; they compute in float32.

    Args:
        traced: the captioner in float32.
        quantised: the same with layers in 8 bits.
    """
    return replace(
        traced,
        start=_with_rounded_weights(traced.start, quantised.start),
        step=_with_rounded_weights(traced.step, quantised.step),
    )


def _with_rounded_weights(piece: onnx.ModelProto, quantised: onnx.ModelProto) -> onnx.ModelProto:
    stored = {tensor.name: tensor for tensor in quantised.graph.initializer}
    rounded = onnx.ModelProto()
    rounded.CopyFrom(plain_products(piece))
    for tensor in rounded.graph.initializer:
        steps, scale = (stored.get(f"{tensor.name}{suffix}") for suffix in QUANTISED)
        if steps is not None and scale is not None:
            weight = numpy_helper.to_array(steps).astype(np.float32) * numpy_helper.to_array(scale)
            tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))
    return rounded


def choose(
    traced: TracedCaptioner,
    weights: str,
    describe: Describe,
    describe_some: Describe,
    cider: Callable[[Captions], float],
) -> Choice:
    """Put as many weights in 8 bits as the acceptance criterion allows.

    Every layer is tried alone; the layers are then sorted by damage per weight, and bisection finds how many of them
    can be taken.

    Args:
        traced: the captioner in float32.
        weights: a key of :data:`WEIGHTS`.
        describe: captions all images on which the criterion is measured.
        describe_some: captions a few of them, for trying layers one by one.
        cider: CIDEr-D of captions of all images.
    """
    sizes = layers_of(traced)
    few = list(describe_some(traced))
    damage = {
        name: _mean_change(few, list(describe_some(to_int8(traced, [name], weights))))
        for name in tqdm(sizes, desc="layers alone", unit="layer")
    }
    order = sorted(sizes, key=lambda name: damage[name] / sizes[name])
    exact = list(describe(traced))
    exact_cider = cider(exact)
    trials: list[Trial] = []

    def trial(count: int) -> Trial:
        candidate = to_int8(traced, order[:count], weights)
        said: list[tuple[list[int], float]] = []
        changed = 0
        for caption, (expected, _) in zip(describe(candidate), exact, strict=True):
            said.append(caption)
            changed += caption[0] != expected
            if changed > (1 - IDENTICAL) * len(exact):
                break
        share = sum(sizes[name] for name in order[:count]) / sum(sizes.values())
        loss = exact_cider - cider(said) if len(said) == len(exact) else None
        return Trial(tuple(order[:count]), share, len(said), 1 - changed / len(said), loss)

    best = Trial((), 0.0, len(exact), 1.0, 0.0)
    low, high = 0, len(order) + 1  # the most layers that passed, the fewest that did not
    while high - low > 1:
        trials.append(trial((low + high) // 2))
        print(trials[-1], flush=True)
        if trials[-1].passes:
            best, low = trials[-1], (low + high) // 2
        else:
            high = (low + high) // 2
    return Choice(to_int8(traced, best.layers, weights), weights, best, trials, damage)


def _mean_change(exact: Captions, said: Captions) -> float:
    return float(np.mean([abs(score - expected) for (_, score), (_, expected) in zip(said, exact, strict=True)]))


def _layers(piece: onnx.ModelProto, prefix: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the node name and weight shape of each layer, by its place; ``piece`` is of :func:`plain_products`."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in piece.graph.initializer}
    layers = [
        (node.name, shapes[node.input[1]])
        for node in piece.graph.node
        if node.op_type == "MatMul" and len(shapes.get(node.input[1], ())) == 2
    ]
    return {f"{prefix}/{place}": layer for place, layer in enumerate(layers)}


def _quantise(
    piece: onnx.ModelProto, prefix: str, layers: Collection[str], weights: str, trained: bool
) -> onnx.ModelProto:
    split = plain_products(piece)
    nodes = {
        node
        for place, (node, shape) in _layers(split, prefix).items()
        if f"{place} {'x'.join(map(str, shape))}" in layers
    }
    if not nodes:
        return piece
    piece = split
    if not trained:
        if projection_of(piece) in nodes:
            piece = with_shortlist(piece)
        piece = apart_from_tables(piece, nodes)
    return _quantise_nodes(piece, nodes, weights)


def quantise_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Compute all products of a graph with constant matrices in 8 bits: the layers of a vision transformer.

    Args:
        model: the graph, in float32; one without such products, such as a convolutional network's, stays as it is.
    """
    split = plain_products(model)
    nodes = {node for node, _ in _layers(split, "vision").values()}
    return _quantise_nodes(split, nodes, TRAINED_WEIGHTS) if nodes else model


def _quantise_nodes(piece: onnx.ModelProto, nodes: Collection[str], weights: str) -> onnx.ModelProto:
    kind, reduce_range = WEIGHTS[weights]
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser recommends a preprocessing that has no effect here
    try:
        with tempfile.TemporaryDirectory() as folder:
            before, after = Path(folder, "before.onnx"), Path(folder, "after.onnx")
            onnx.save(piece, str(before))
            quantize_dynamic(
                before, after, op_types_to_quantize=["MatMul"], nodes_to_quantize=sorted(nodes), per_channel=True,
                reduce_range=reduce_range, weight_type=kind,
                extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
            )  # fmt: skip
            return onnx.load(str(after))
    finally:
        logging.getLogger().setLevel(level)


def apart_from_tables(piece: onnx.ModelProto, nodes: Collection[str]) -> onnx.ModelProto:
    """Write ``(x + table[i]) @ W`` as ``x @ W + (table @ W)[i]``, for the named products.

    The input of the decoder's first layer is the sum of a word's embedding and its position's, which is some twenty
    times larger: if the sum is quantised, 8 bits leave few to the word. The product of the table of positions, which is
    small, is computed at once.
    """
    apart = onnx.ModelProto()
    apart.CopyFrom(piece)
    graph = apart.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    written: list[onnx.NodeProto] = []
    for node in graph.node:
        written.append(node)
        found = _smallest_table(node.input[0], makers, constants) if node.name in nodes else None
        if found is None:
            continue
        rest, gather = found
        table, weight = (numpy_helper.to_array(constants[name]) for name in (gather.input[0], node.input[1]))
        product, (result,) = f"{node.name}/of_table", node.output
        graph.initializer.append(numpy_helper.from_array(table @ weight, product))
        node.input[0], node.output[0] = rest, f"{node.name}/of_rest"
        written += [
            helper.make_node("Gather", [product, gather.input[1]], [f"{node.name}/of_row"]),
            helper.make_node("Add", [node.output[0], f"{node.name}/of_row"], [result]),
        ]
    del graph.node[:]
    graph.node.extend(written)
    return apart


def _smallest_table(
    value: str, makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, onnx.TensorProto]
) -> tuple[str, onnx.NodeProto] | None:
    """If ``value`` is a sum of something and of rows of a table: return the former, and the lookup of the latter."""
    add = makers.get(value)
    if add is None or add.op_type != "Add":
        return None
    lookups = [
        (constants[maker.input[0]].dims[0], other, maker)
        for name, other in (add.input, reversed(add.input))
        if (maker := makers.get(name)) is not None
        and maker.op_type == "Gather"
        and all(attribute.i == 0 for attribute in maker.attribute)  # along the first axis
        and maker.input[0] in constants
    ]
    if not lookups:
        return None
    _, rest, lookup = min(lookups, key=lambda lookup: lookup[0])
    return rest, lookup
