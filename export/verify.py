"""Hold a bundle against the torch model that it was exported from, and graphs against what engines can run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import onnx
import torch
from onnx import TensorProto
from torch import Tensor

from smart_caption_ros.captioning import Bundle, Caption
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, VISION_GRAPH
from smart_caption_ros.engines import Engine
from smart_caption_ros.engines.base import Graph
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Visual


@dataclass(frozen=True)
class Agreement:
    """How close the bundle comes to torch."""

    images: int
    identical_captions: int
    largest_log_probability_difference: float
    """Over the words of identical captions, natural logarithm."""


def synthetic_images(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Smooth coloured blobs, (count, size, size, 3) uint8: frames for a check where there are no photographs."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, size=(count, 6, 6, 3), dtype=np.uint8)
    return np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])


def compare(
    trained: TrainedCaptioner,
    images_bgr: np.ndarray,
    captions: Sequence[Caption],
    beam_size: int,
    max_words: int,
    tokens_of: Callable[[np.ndarray], Tensor] | None = None,
) -> Agreement:
    """Hold what a bundle said of frames against what torch says.

    Args:
        images_bgr: (B, 224, 224, 3) uint8.
        captions: of the same frames, by the bundle.
        beam_size, max_words: of the bundle.
        tokens_of: makes the tokens of frames; None: the captioner's own backbone does.
    """
    identical, largest = 0, 0.0
    for image, caption in zip(images_bgr, captions, strict=True):
        if tokens_of is None:
            expected = trained.caption_images(image[None], beam_size, max_words)
        else:
            with torch.inference_mode():
                expected = trained.caption(Visual(tokens_of(image[None])), beam_size, max_words)
        words = trained.sentences(expected)[0]
        if [word.text for word in caption.words] == words:
            identical += 1
            ours = np.array([word.log_probability for word in caption.words])
            theirs = expected.log_probabilities[0, 0, : len(words)].numpy()
            largest = max(largest, float(np.abs(ours - theirs).max(initial=0.0)))
    return Agreement(len(images_bgr), identical, largest)


def compare_forms(bundle: Bundle, engine: Engine, images_bgr: np.ndarray) -> Agreement:
    """Hold the static form of a bundle's captioner against its Loop form, on frames (B, 224, 224, 3) uint8."""
    assert bundle.static_graph is not None
    vision, loop, static = (
        engine.load(path) for path in (bundle.path / VISION_GRAPH, bundle.path / CAPTIONER_GRAPH, bundle.static_graph)
    )
    identical, largest = 0, 0.0
    for image in images_bgr:
        tokens = vision.run({"image_bgr": image[None]})["tokens"]
        inputs = {"tokens": tokens, "token_mask": np.ones(tokens.shape[:2], dtype=bool)}
        expected, found = loop.run(inputs), static.run(inputs)
        steps = expected["words"].shape[2]
        words = found["words"][0, 0]
        if np.array_equal(words[:steps], expected["words"][0, 0]) and not words[steps:].any():
            identical += 1
            difference = found["log_probabilities"][0, 0, :steps] - expected["log_probabilities"][0, 0]
            largest = max(largest, float(np.abs(difference).max()))
    return Agreement(len(images_bgr), identical, largest)


class Difference(NamedTuple):
    """How far the objects of a vision graph are from torch's."""

    score: float
    """The largest of any class score."""
    box: float
    """The largest of a box's edge, in widths and heights of the frame, where a class has a score of at least 0.05."""


def compare_detections(trained: TrainedCaptioner, vision: Graph, images_bgr: np.ndarray) -> Difference:
    """Hold the objects that a vision graph finds in frames, (B, 224, 224, 3) uint8, against those of torch."""
    assert trained.backbone is not None
    scores, edges = 0.0, 0.0
    for image in images_bgr:
        outputs = vision.run({"image_bgr": image[None]})
        with torch.inference_mode():
            expected = trained.backbone.features(torch.from_numpy(image[None])).detections
        assert expected is not None
        class_scores = expected.class_scores.numpy()
        sure = class_scores.max(axis=-1) >= 0.05
        scores = max(scores, float(np.abs(outputs["class_scores"] - class_scores).max()))
        found, wanted = outputs["boxes"][sure], expected.boxes_xyxy.numpy()[sure]
        edges = max(edges, float(np.abs(found - wanted).max(initial=0.0)))
    return Difference(scores, edges)


_SUPPORT = Path(__file__).with_name("tensorrt_operators.json")
_TYPES = {
    TensorProto.FLOAT: "FP32", TensorProto.FLOAT16: "FP16", TensorProto.INT32: "INT32", TensorProto.INT64: "INT64",
    TensorProto.BOOL: "BOOL", TensorProto.UINT8: "UINT8", TensorProto.INT8: "INT8",
}  # fmt: skip
_CONTROL_FLOW = ("If", "Loop", "Scan")
_DYNAMIC = ("NonZero", "Scatter", "ScatterElements", "ScatterND", "Shape", "Size", "Unique")


def unsupported_by_tensorrt(model: onnx.ModelProto, *, static: bool = True) -> list[str]:
    """What in a graph is not on the published list of operators of onnx-tensorrt (``tensorrt_operators.json``).

    Args:
        static: the graph shall have fixed shapes as well, and nothing that computes or depends on one.

    Returns:
        A sentence for each operator, type or shape that is in the way; empty when there is none.
    """
    support = json.loads(_SUPPORT.read_text(encoding="utf-8"))
    found: dict[str, None] = {}  # a set in the order of finding
    lowest, highest = support["opsets"]
    for opset in model.opset_import:
        if opset.domain:
            found[f"operators of {opset.domain} are none of ONNX"] = None
        elif not lowest <= opset.version <= highest:
            found[f"opset {opset.version} is not among {lowest} to {highest}"] = None
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = inferred.graph
    constants = {tensor.name for tensor in graph.initializer}
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    shapes: dict[str, list[int]] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
        shapes[value.name] = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    for node in graph.node:
        operator = node.op_type
        listed = support["operators"].get(operator)
        if static and operator in (*_CONTROL_FLOW, *_DYNAMIC):
            found[f"{operator} ({node.name}) has no place in a static graph"] = None
        elif listed is None:
            found[f"{operator} ({node.name}) is not on the list of {support['version']}"] = None
        else:
            # The list speaks of what goes in, and for these two of what comes out.
            for name in (*node.input, *(node.output if operator in ("Cast", "ConstantOfShape") else ())):
                if name and (kind := _TYPES.get(types.get(name, 0), "unknown type")) not in listed["types"]:
                    found[f"{operator} does not take {kind} ({name})"] = None
        if operator == "TopK" and node.input[1] not in constants:
            found[f"TopK ({node.name}) needs a constant k"] = None
        if static:
            for name in node.output:
                if name and 0 in shapes.get(name, [0]) and operator not in _CONTROL_FLOW:
                    found[f"{operator} makes {name} of a shape that is not fixed"] = None
    return list(found)
