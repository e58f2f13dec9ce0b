"""8-bit layers for CPUs: weights per output channel, inputs quantised as they come, by ONNX Runtime's quantiser.

Which layers bear it is measured, not guessed: :func:`choose` keeps in float32 what changes captions most, until the
bundle says what its float32 form says. Where the projection onto the vocabulary is among them, the likeliest words are
computed once more in float32 (:mod:`export.passes.shortlist`).
"""

import logging
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tqdm import tqdm

from export.passes.shortlist import projection_of, with_shortlist
from export.passes.simplify import split_gemms
from export.trace import TracedCaptioner

WEIGHTS = {"u8": (QuantType.QUInt8, False), "7bit": (QuantType.QInt8, True), "s8": (QuantType.QInt8, False)}
"""Kinds of weights. Signed ones run fastest; all 8 bits of them saturate in the additions of CPUs with AVX2 but not
VNNI (before 2019 or so), 7 do not."""

IDENTICAL, CIDER_LOSS = 0.99, 0.005
"""The bar: the share of captions that stay the same at least, and the CIDEr-D (of 10) that may be lost at most."""

Captions = Sequence[tuple[list[int], float]]
"""Ids of each image's best caption, and its score."""
Describe = Callable[[TracedCaptioner], Iterable[tuple[list[int], float]]]
"""What traced say of images, one after the other; it need not be asked to the end."""


@dataclass(frozen=True)
class Trial:
    """What a choice of layers gave."""

    layers: tuple[str, ...]
    """Those in 8 bits."""
    share_of_weights: float
    """Of all layers' weights."""
    images: int
    """That were looked at; fewer than all where the bar was out of reach by then."""
    identical: float
    """Share of their captions that are those of float32."""
    cider_loss: float | None
    """None where the captions had failed already."""

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
    """The layers that were put in 8 bits, and all that was measured on the way."""

    traced: TracedCaptioner
    weights: str
    chosen: Trial
    trials: Sequence[Trial]
    damage: Mapping[str, float] = field(default_factory=dict)
    """Mean change of a caption's score with that layer alone in 8 bits, natural logarithm."""

    def report(self) -> dict[str, Any]:
        """For the manifest."""

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
    """Layers that can be quantised and how many weights they have, in the order of computing.

    A name says the piece, the place in it and the shape: ``step/3 512x2048``.
    """
    layers = {**_layers(split_gemms(traced.start), "start"), **_layers(split_gemms(traced.step), "step")}
    return {f"{place} {'x'.join(map(str, shape))}": int(np.prod(shape)) for place, (_, shape) in layers.items()}


def to_int8(traced: TracedCaptioner, layers: Collection[str], weights: str) -> TracedCaptioner:
    """The traced with ``layers`` in 8 bits; ``weights`` is one of :data:`WEIGHTS`."""
    return replace(
        traced,
        start=_quantise(traced.start, "start", layers, weights),
        step=_quantise(traced.step, "step", layers, weights),
    )


def choose(
    traced: TracedCaptioner,
    weights: str,
    describe: Describe,
    describe_some: Describe,
    cider: Callable[[Captions], float],
) -> Choice:
    """Put as many weights in 8 bits as the bar allows.

    Every layer is tried alone first; then the layers are taken in the order of damage for their size, and how far
    down the list one can go is found by bisection.

    Args:
        describe: captions of all images that the bar is measured on.
        describe_some: captions of a few, for trying layers one by one.
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
    low, high = 0, len(order) + 1  # as many layers as passed; the fewest that did not
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
    """Return the node name and weight shape of each layer, by its place; ``piece`` has no Gemm."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in piece.graph.initializer}
    layers = [
        (node.name, shapes[node.input[1]])
        for node in piece.graph.node
        if node.op_type == "MatMul" and len(shapes.get(node.input[1], ())) == 2
    ]
    return {f"{prefix}/{place}": layer for place, layer in enumerate(layers)}


def _quantise(piece: onnx.ModelProto, prefix: str, layers: Collection[str], weights: str) -> onnx.ModelProto:
    split = split_gemms(piece)
    nodes = {
        node
        for place, (node, shape) in _layers(split, prefix).items()
        if f"{place} {'x'.join(map(str, shape))}" in layers
    }
    if not nodes:
        return piece
    piece = split
    if projection_of(piece) in nodes:
        piece = with_shortlist(piece)
    piece = apart_from_tables(piece, nodes)
    kind, reduce_range = WEIGHTS[weights]
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser advises on a preprocessing that does nothing here
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
    """The same piece with ``(x + table[i]) @ W`` written as ``x @ W + (table @ W)[i]``, for the named products.

    The decoder's first layer takes the sum of a word's embedding and its position's, and the latter is some twenty
    times larger: quantised together, 8 bits leave few to the word. The table of positions is small enough to be
    multiplied here and now.
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
    """Where ``value`` is a sum of something and of rows of a table: the former, and the lookup of the latter."""
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
    _, rest, lookup = min(lookups, key=lambda each: each[0])
    return rest, lookup
