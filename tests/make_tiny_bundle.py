"""Write a bundle of less than 100 kB with random weights, for tests that need a bundle but no PyTorch.

    python -m tests.make_tiny_bundle FOLDER

Making it needs PyTorch; using it does not. Its vision graph averages 32 x 32 pixels for each of 7 x 7 tokens, so
captions depend on the image; its captioner is a one-layer SMArT with two beams, in both forms.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from export.bundle import write_bundle
from export.captioner import loop_form, static_form
from export.storage import round_to_float16, store_as_float16
from export.trace import export_pieces
from smart_caption_ros.captioning import Bundle
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, STATIC_GRAPH, VISION_GRAPH
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import tiny_smart

IMAGE_SIZE, GRID, TOKEN_WIDTH, BEAM_SIZE, MAX_WORDS = 224, 7, 16, 2, 6
WORDS = (*SPECIAL, *(f"w{number}" for number in range(4, 40)))


def tiny_vision_graph(seed: int = 0) -> onnx.ModelProto:
    """``image_bgr`` (B, 224, 224, 3) uint8 -> ``tokens`` (B, 49, 16) float32: a linear layer of average colours."""
    random = np.random.default_rng(seed)
    cell = IMAGE_SIZE // GRID
    nodes = [
        helper.make_node("Cast", ["image_bgr"], ["image"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["image"], ["channels_first"], perm=[0, 3, 1, 2]),
        helper.make_node("AveragePool", ["channels_first"], ["colours"], kernel_shape=[cell, cell], strides=[cell] * 2),
        helper.make_node("Conv", ["colours", "weight", "bias"], ["grid"]),
        helper.make_node("Reshape", ["grid", "shape"], ["cells"]),
        helper.make_node("Transpose", ["cells"], ["tokens"], perm=[0, 2, 1]),
    ]
    weight = random.normal(0, 0.03, (TOKEN_WIDTH, 3, 1, 1)).astype(np.float32)
    constants = {
        "weight": weight,
        "bias": -128 * weight.sum(axis=(1, 2, 3)),
        "shape": np.array([0, TOKEN_WIDTH, GRID * GRID]),
    }
    graph = helper.make_graph(
        nodes, "tiny_vision",
        [helper.make_tensor_value_info("image_bgr", TensorProto.UINT8, ["batch", IMAGE_SIZE, IMAGE_SIZE, 3])],
        [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", GRID * GRID, TOKEN_WIDTH])],
        initializer=[numpy_helper.from_array(values, name) for name, values in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def shorten_names(model: onnx.ModelProto) -> None:
    """Remove the names of nodes and shorten those of values, in place: most of the bytes of so small a graph."""
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    short: dict[str, str] = {name: name for name in kept}

    def shortened(name: str) -> str:
        return short.setdefault(name, f"v{len(short):x}") if name else name

    def shorten(graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = shortened(value.name)
        for node in graph.node:
            node.name = ""
            for field in (node.input, node.output):
                field[:] = [shortened(name) for name in field]
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    shorten(attribute.g)

    shorten(model.graph)


def make_tiny_bundle(folder: Path) -> Bundle:
    """Write the bundle; ``folder`` must not exist.

    Raises:
        ExportError: ``folder`` exists.
    """
    model = tiny_smart(
        TOKEN_WIDTH, len(WORDS), d_model=16, heads=2, d_ff=16, encoder_layers=1, decoder_layers=1, memory_slots=2
    )
    with torch.no_grad():
        model.word_projection.weight[Vocabulary.end_id] *= 0.8  # fewer captions without a word
    round_to_float16(model)
    pieces = export_pieces(model, BEAM_SIZE)
    graphs = {
        VISION_GRAPH: tiny_vision_graph(),
        CAPTIONER_GRAPH: loop_form(pieces, MAX_WORDS),
        STATIC_GRAPH: static_form(pieces, MAX_WORDS, GRID * GRID),
    }
    for graph in graphs.values():
        store_as_float16(graph)
        shorten_names(graph)
    facts = {
        "format_version": 1,
        "name": "tiny",
        "created": "2026-11-22",
        "exported_by": {},
        "architecture": {"family": "smart", "backbone": "averages of 32 x 32 pixels", "parameters": 0},
        "trained_on": [{"name": "nothing: random weights", "terms": "none"}],
        "training": {},
        "preprocessing": {
            "width": IMAGE_SIZE, "height": IMAGE_SIZE, "channels": "bgr", "dtype": "uint8", "resize": "squash",
            "interpolation": "area where the frame shrinks, linear where it grows",
        },
        "tokens": {"rows": GRID, "columns": GRID, "width": TOKEN_WIDTH},
        "decoding": {"beam_size": BEAM_SIZE, "max_words": MAX_WORDS},
        "precision": {"stored": "float16", "computed": "float32"},
        "class_names": [],
        "scores": {},
    }  # fmt: skip
    return write_bundle(folder, graphs, Vocabulary(WORDS), facts, check=lambda bundle: None)


if __name__ == "__main__":
    written = make_tiny_bundle(Path(sys.argv[1]))
    print(f"{written.path}: {sum(file.stat().st_size for file in written.path.iterdir()) / 1e3:.0f} kB")
