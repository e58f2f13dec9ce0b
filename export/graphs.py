"""The graphs of a bundle in the precision and storage that the options ask for."""

import math
from dataclasses import dataclass

import onnx

from export.bundle import ExportError
from export.loop_form import loop_form
from export.options import ExportOptions
from export.passes.float16 import to_float16, write_float16
from export.passes.int8 import IDENTICAL, Choice, as_computed, choose, with_rounded_weights
from export.quality import DevSplit
from export.source import Source
from export.static_form import static_form
from export.storage import store_as_float16, store_as_int8
from export.tensorrt_support import unsupported_by_tensorrt
from export.trace import TracedCaptioner, trace_captioner
from export.verify import grid_inputs
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, STATIC_GRAPH, VISION_GRAPH

_LAYER_CHECKS = 50  # images on which the layers are tried one by one


@dataclass(frozen=True)
class BundleGraphs:
    """What :func:`make_graphs` makes."""

    graphs: dict[str, onnx.ModelProto]
    """By file name; weights are inside."""
    captioner_inputs: tuple[str, ...]
    int8: Choice | None
    """The layers in 8 bits; None for other precisions."""


def make_graphs(source: Source, options: ExportOptions) -> BundleGraphs:
    """Trace the captioner and its backbone and write them in the precision and storage of the options.

    Raises:
        ExportError: no layer can be put in 8 bits, or TensorRT cannot run the static form.
    """
    vision = source.vision_graph()
    traced = trace_captioner(
        source.trained.captioner, options.beam_size, guided=options.guided, repeats=source.trained.repeats
    )
    inputs, choice, static = traced.inputs, None, options.static and options.precision != "int8"
    unrolled = traced
    if options.precision == "float16":
        if source.lender is None:
            vision, _ = write_float16(vision)
        traced = unrolled = to_float16(traced)
    elif options.precision == "int8" and source.trained.eight_bits:
        choice = as_computed(traced, source.trained.captioner, trained=source.trained_in_8_bits)
        unrolled, traced, static = with_rounded_weights(traced, choice.traced), choice.traced, options.static
    elif options.precision == "int8":
        vocabulary = source.trained.vocabulary
        dev = DevSplit.load(
            vocabulary, vision, lambda tokens: grid_inputs(inputs, tokens, source.grid, len(vocabulary))
        )
        choice = _choose_layers(traced, dev, source.max_words, options.int8_weights or "u8")
        traced = choice.traced
    graphs = {VISION_GRAPH: vision, CAPTIONER_GRAPH: loop_form(traced, source.max_words)}
    if static:
        graphs[STATIC_GRAPH] = static_form(unrolled, source.max_words, math.prod(source.grid))
        if reasons := unsupported_by_tensorrt(graphs[STATIC_GRAPH]) + unsupported_by_tensorrt(vision, static=False):
            raise ExportError(f"TensorRT cannot run the graphs: {reasons[0]} ({len(reasons)} reasons in all)")
    if options.rounded:
        for name, graph in graphs.items():
            if source.lender is None or name != VISION_GRAPH:  # a borrowed graph stays as it is
                if options.int8_storage or (name == STATIC_GRAPH and choice is not None):
                    store_as_int8(graph)
                store_as_float16(graph)
    return BundleGraphs(graphs, inputs, choice)


def _choose_layers(traced: TracedCaptioner, dev: DevSplit, max_words: int, weights: str) -> Choice:
    """Choose the layers in 8 bits by what they do to captions of the dev split.

    Raises:
        ExportError: no layer passes.
    """
    choice = choose(
        traced, weights,
        lambda candidate: dev.captions(loop_form(candidate, max_words)),
        lambda candidate: dev.captions(loop_form(candidate, max_words), _LAYER_CHECKS),
        dev.cider_d,
    )  # fmt: skip
    if not choice.chosen.layers:
        raise ExportError(f"no layer of this model can be put in 8 bits with {IDENTICAL:.0%} of its captions the same")
    return choice
