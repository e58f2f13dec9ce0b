"""The graphs of a bundle in the precision and storage that the options ask for."""

import sys
from dataclasses import dataclass

import onnx

from export.bundle import ExportError
from export.captioner_graph import loop_form, static_form
from export.options import ExportOptions
from export.parameter_table import parameter_table
from export.passes.float16 import to_float16, write_float16
from export.passes.int8 import EightBitLayers, as_computed, quantise_products, with_rounded_weights
from export.source import Source
from export.storage import store_as_float16, store_as_int8
from export.tensorrt import unsupported_by_tensorrt
from export.trace import trace_captioner
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, STATIC_GRAPH, VISION_GRAPH
from training.engine.bundle_captioner import Place


@dataclass(frozen=True)
class BundleGraphs:
    """What :func:`make_graphs` makes."""

    graphs: dict[str, onnx.ModelProto]
    """By file name; weights of large graphs are files (:mod:`export.weights`)."""
    captioner_inputs: tuple[str, ...]
    parameters: dict[str, Place]
    """Place of each parameter in the captioner's graph, without those of which it holds computed values alone."""
    int8: EightBitLayers | None
    """The layers in 8 bits; None for other precisions."""


def make_graphs(source: Source, options: ExportOptions) -> BundleGraphs:
    """Trace the captioner and its backbone and write them in the precision and storage of the options.

    Raises:
        ExportError: TensorRT cannot run the static form.
    """
    _report("exporting the vision graph")
    vision = source.vision_graph(fused_attention=options.precision == "int8")
    trained = source.trained
    max_words = trained.search.max_words
    _report("tracing the captioner")
    traced = trace_captioner(
        trained.captioner, trained.search, guided=options.guided, same_words=trained.same_words, pieces=trained.pieces
    )
    parameters = parameter_table(trained.captioner, traced, trained.search.end_penalty)
    inputs, int8, static, unrolled = traced.inputs, None, options.static, traced
    if options.precision == "float16":
        if source.vision_bundle is None:
            vision, _ = write_float16(vision)
        traced = unrolled = to_float16(traced)
    elif options.precision == "int8":
        int8 = as_computed(traced, trained.captioner, trained=source.trained_in_8_bits)
        unrolled, traced = with_rounded_weights(traced, int8.traced), int8.traced
    if options.precision == "int8" and source.vision_bundle is None:
        products = quantise_products(vision)
        static = static and products is vision  # TensorRT has no products in 8 bits
        vision = products
    if static and len(unrolled.step.graph.node) * max_words > _MOST_NODES:
        _report(f"the form for TensorRT, a graph of all {max_words} words, would be too large: it is left out")
        static = False
    _report("joining the graphs")
    graphs = {VISION_GRAPH: vision, CAPTIONER_GRAPH: loop_form(traced, max_words)}
    if static:
        graphs[STATIC_GRAPH] = static_form(unrolled, max_words, source.tokens)
        if reasons := unsupported_by_tensorrt(graphs[STATIC_GRAPH]) + unsupported_by_tensorrt(vision, static=False):
            raise ExportError(f"TensorRT cannot run the graphs: {reasons[0]} ({len(reasons)} reasons in all)")
    if options.rounded:
        for name, graph in graphs.items():
            if source.vision_bundle is None or name != VISION_GRAPH:  # another bundle's graph stays as it is
                if options.int8_storage or (name == STATIC_GRAPH and int8 is not None):
                    store_as_int8(graph)
                store_as_float16(graph)
    return BundleGraphs(graphs, inputs, parameters, int8)


_MOST_NODES = 40_000
"""Largest number of nodes of the static form; TensorRT takes hours for more."""


def _report(step: str) -> None:
    """Print the step that begins now."""
    print(f"{step} ...", file=sys.stderr, flush=True)
