"""Make the bundles ``tiny`` and ``detecting`` of this folder: ``python -m tests.bundles.make``.

They are committed, so that the robot side's tests need neither torch nor ``training``. Make them again when the
bundle format or the exported graphs change. The captioner is a SMArT with random weights, exported by the command that
a user types; the vision graph is a mean over the cells of a 7x7 grid and one random layer.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smart_caption_ros.captioning.bundle import FORMAT_VERSION, VISION_GRAPH, write_manifest
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.files import sha256_of
from tests.tiny_model import tiny_smart
from training.data.feature_extraction import VISION_GRAPH_TOKENS
from training.engine.trained_captioner import TrainedCaptioner

FOLDER = Path(__file__).resolve().parent
SIDE, GRID, TOKEN_WIDTH = 224, 7, 8
CLASSES = ("cup", "chair", "person")
MAX_WORDS = 6
WORDS = (*SPECIAL, *(f"w{index}" for index in range(4, 60)))


def main():
    with tempfile.TemporaryDirectory() as temporary:
        for name, options in (("tiny", ["--no-guide"]), ("detecting", ["--no-static"])):
            work = Path(temporary) / name
            lender = write_lender(work / "lender", detects=name == "detecting")
            save_checkpoint(work / "best.safetensors", lender)
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            command = [sys.executable, "-m", "export", work / "best.safetensors", FOLDER / name]
            command += ["--vision-from", lender, "--check-images", "8", *options]
            subprocess.run(list(map(str, command)), check=True)


def save_checkpoint(path, lender):
    """Save a random captioner of the tokens that the bundle ``lender`` makes."""
    captioner = tiny_smart(TOKEN_WIDTH, len(WORDS), seed=4, d_ff=32, encoder_layers=1, decoder_layers=1, max_length=9)
    source = {"made_by": VISION_GRAPH_TOKENS, "bundle": "lender", "vision_sha256": sha256_of(lender / VISION_GRAPH)}
    record = {
        "name": "tiny",
        "experiment": {"data": {"max_words": MAX_WORDS}},
        "features": {"kind": "store", "source": source},
    }
    TrainedCaptioner("smart", captioner, None, Vocabulary(WORDS), record, Search(max_words=MAX_WORDS)).save(path)


def write_lender(folder, detects):
    """Write a bundle without a captioner, whose vision graph the captioner takes over."""
    folder.mkdir(parents=True)
    path = folder / VISION_GRAPH
    path.write_bytes(vision_graph(detects).SerializeToString())
    manifest = {
        "format_version": FORMAT_VERSION,
        "name": "lender",
        "architecture": {"family": "smart", "backbone": "cell means"},
        "trained_on": [{"name": "nothing", "terms": "random weights"}],
        "preprocessing": {
            "width": SIDE, "height": SIDE, "channels": "bgr", "dtype": "uint8", "resize": "squash",
            "interpolation": "area",
        },
        "tokens": {"rows": GRID, "columns": GRID, "before_grid": 0, "width": TOKEN_WIDTH},
        "class_names": list(CLASSES) if detects else [],
        "files": {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}},
    }  # fmt: skip
    if detects:
        manifest["detector"] = {"layout": "vision", "minimum_score": 0.2}
    write_manifest(folder, manifest)
    return folder


def vision_graph(detects):
    """``image_bgr`` (B, 224, 224, 3) uint8 -> ``tokens`` (B, 49, 8), and objects where ``detects``.

    ``boxes`` (B, 49, 4) are the cells of the grid, twice as large: those of neighbours overlap, those at the edge reach
    out of the frame. ``class_scores`` (B, 49, 3) depend on the colour of the cell.
    """
    random = np.random.default_rng(0)
    cell = SIDE // GRID
    nodes = [
        helper.make_node("Cast", ["image_bgr"], ["float_image"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["float_image", "cells_shape"], ["cells_of_pixels"]),
        helper.make_node("ReduceMean", ["cells_of_pixels", "pixel_axes"], ["means"], keepdims=0),
        helper.make_node("Reshape", ["means", "rows_shape"], ["colours"]),
        helper.make_node("Sub", ["colours", "grey"], ["centred"]),
        helper.make_node("MatMul", ["centred", "to_tokens"], ["projected"]),
        helper.make_node("Sigmoid", ["projected"], ["tokens"]),
    ]
    constants = {
        "cells_shape": np.array([0, GRID, cell, GRID, cell, 3], np.int64),
        "pixel_axes": np.array([2, 4], np.int64),
        "rows_shape": np.array([0, GRID * GRID, 3], np.int64),
        "grey": np.array(128, np.float32),
        "to_tokens": random.normal(0, 0.04, (3, TOKEN_WIDTH)).astype(np.float32),
    }
    outputs = {"tokens": TOKEN_WIDTH}
    if detects:
        rows, columns = np.divmod(np.arange(GRID * GRID), GRID)
        corners = np.stack([columns - 0.5, rows - 0.5, columns + 1.5, rows + 1.5], axis=1) / GRID
        nodes += [
            helper.make_node("MatMul", ["centred", "to_classes"], ["logits"]),
            helper.make_node("Sigmoid", ["logits"], ["class_scores"]),
            helper.make_node("Mul", ["centred", "zeros"], ["zero_colours"]),
            helper.make_node("ReduceSum", ["zero_colours", "last_axis"], ["zero_of_each_cell"]),
            helper.make_node("Add", ["cells", "zero_of_each_cell"], ["boxes"]),
        ]
        constants |= {
            "to_classes": random.normal(0, 0.03, (3, len(CLASSES))).astype(np.float32),
            "cells": corners.astype(np.float32)[None],
            "zeros": np.zeros(3, np.float32),
            "last_axis": np.array([2], np.int64),
        }
        outputs |= {"boxes": 4, "class_scores": len(CLASSES)}
    graph = helper.make_graph(
        nodes,
        "vision",
        [helper.make_tensor_value_info("image_bgr", TensorProto.UINT8, ["batch", SIDE, SIDE, 3])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", GRID * GRID, width])
            for name, width in outputs.items()
        ],
        initializer=[numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    main()
