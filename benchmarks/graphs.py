"""Export the graphs of a model that the benchmarks measure."""

from pathlib import Path

import onnx

from export.loop_form import loop_form
from export.passes.int8 import layers_of, to_int8
from export.static_form import static_form
from export.storage import share_weights
from export.trace import trace_captioner
from training.models.captioner import Captioner

FORCED, EARLY_EXIT = "", "_early_exit"


def write_graphs(captioner: Captioner, folder: Path, beam_size: int, max_words: int) -> dict[str, Path]:
    """Write the Loop form in float32 and with every layer in 8 bits, each with and without early exit.

    Returns:
        Files by variant: ``onnx_fp32``, ``onnx_fp32_early_exit``, ``onnx_int8`` and ``onnx_int8_early_exit``. Those
        without early exit always decode ``max_words`` words.
    """
    exact = trace_captioner(captioner, beam_size)
    traced = {"onnx_fp32": exact, "onnx_int8": to_int8(exact, layers_of(exact), "7bit")}
    files = {}
    for precision, exported in traced.items():
        for ending in (FORCED, EARLY_EXIT):
            graph = loop_form(exported, max_words, early_exit=ending == EARLY_EXIT)
            files[precision + ending] = folder / f"{precision}{ending}.onnx"
            # External weights are mapped into memory; those inside the graph would be copied.
            share_weights([graph], folder / f"{precision}{ending}.data")
            onnx.save(graph, files[precision + ending])
    return files


def write_static_graph(captioner: Captioner, path: Path, beam_size: int, max_words: int, tokens: int) -> Path:
    """Write the static form in float32 for one image, as a GPU takes it."""
    onnx.save(static_form(trace_captioner(captioner, beam_size), max_words, tokens), path)
    return path
