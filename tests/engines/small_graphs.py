"""Graphs small enough to write by hand, and a static captioner form of a bundle made of one."""

import json
from contextlib import contextmanager

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smart_caption_ros.captioning.bundle import STATIC_GRAPH, Bundle
from smart_caption_ros.files import sha256_of

FLOAT, INT64, BOOL, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
WORDS = np.array([[[4, 5, 2], [6, 2, 0]]])
"""What the static captioner says of every image: ids of two beams, the better one first."""


def save(path, nodes, inputs, outputs, constants):
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*tensor) for tensor in inputs],
        [helper.make_tensor_value_info(*tensor) for tensor in outputs],
        initializer=[numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def doubling(path, batch="batch", factor=2):
    """``x`` (batch, 3) uint8 -> ``y`` = 2 x (or another ``factor``), float32."""
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=FLOAT), helper.make_node("Mul", ["f", "two"], ["y"])]
    shape = [batch, 3]
    return save(path, nodes, [("x", UINT8, shape)], [("y", FLOAT, shape)], {"two": np.array(factor, np.float32)})


def add_static_captioner(bundle):
    """Put a `captioner_static.onnx` into a bundle: two beams of three words, the same for every image, whose first
    log probability is the mean of the tokens that the mask lets through."""
    nodes = [
        helper.make_node("Cast", ["token_mask"], ["mask"], to=FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["tokens", "column"], ["real"]),
        helper.make_node("ReduceMean", ["real"], ["mean"], keepdims=0),
        helper.make_node("Add", ["probabilities", "mean"], ["log_probabilities"]),
        helper.make_node("Identity", ["ids"], ["words"]),
        helper.make_node("Identity", ["sums"], ["scores"]),
        helper.make_node("Identity", ["looks"], ["attention"]),
    ]
    looks = np.zeros((1, 2, 3, 49), np.float32)
    looks[..., 8] = 1
    save(
        bundle / STATIC_GRAPH,
        nodes,
        [("tokens", FLOAT, [1, 49, Bundle.load(bundle).token_width]), ("token_mask", BOOL, [1, 49])],
        [
            ("words", INT64, [1, 2, 3]),
            ("log_probabilities", FLOAT, [1, 2, 3]),
            ("scores", FLOAT, [1, 2]),
            ("attention", FLOAT, [1, 2, 3, 49]),
        ],
        {
            "last": np.array([2]),
            "probabilities": np.full((1, 2, 3), -1, np.float32),
            "ids": WORDS,
            "sums": np.array([[-3, -4]], np.float32),
            "looks": looks,
        },
    )
    list_file(bundle, STATIC_GRAPH)


@contextmanager
def changed_manifest(bundle):
    """The manifest of a bundle, which is written as it is at the end of the block."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    yield manifest
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def list_file(bundle, name):
    path = bundle / name
    with changed_manifest(bundle) as manifest:
        manifest["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
