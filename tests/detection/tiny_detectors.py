"""Detectors small enough to build in a test: they find coloured squares, blue ones, green ones and red ones."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smart_caption_ros.detection.class_names import COCO_CLASSES

SIDE = 64
"""Of the picture that they look at."""
STRIDES = (8, 16, 32)
BLUE, GREEN, RED = ("person", "dog", "chair")
COLOURS_BGR = {BLUE: (255, 0, 0), GREEN: (0, 255, 0), RED: (0, 0, 255)}


def cells():
    """(A, 4): every cell of the three grids as left, top, right, bottom in pixels of the picture."""
    boxes = [
        (x * stride, y * stride, (x + 1) * stride, (y + 1) * stride)
        for stride in STRIDES
        for y in range(SIDE // stride)
        for x in range(SIDE // stride)
    ]
    return np.array(boxes, np.float32)


def write_yolox(path, *, decoded=False, regression=None, names=""):
    """A graph in the layout of YOLOX for COCO's classes: each cell's score is how blue, green or red it is.

    Args:
        path: the file.
        decoded: whether boxes come in pixels.
        regression: (A, 4) what the graph gives as boxes; None stands for the cells themselves.
        names: the file's metadata `names`; none by default.
    """
    boxes = cells()
    if regression is None:
        sizes = boxes[:, 2:] - boxes[:, :2]
        if decoded:
            regression = np.hstack([(boxes[:, :2] + boxes[:, 2:]) / 2, sizes])
        else:
            regression = np.tile(np.array([0.5, 0.5, 0.0, 0.0], np.float32), (len(boxes), 1))
    constants = np.hstack([regression, np.ones((len(boxes), 1))])[None].astype(np.float32)
    nodes, initializers = _colour_scores("images", 255.0)
    nodes.append(helper.make_node("Concat", ["constants", "class_scores"], ["output"], axis=2))
    initializers.append(numpy_helper.from_array(constants, "constants"))
    given = [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIDE, SIDE])]
    answer = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, len(boxes), 85])]
    return _save(path, nodes, given, answer, initializers, {"names": names} if names else {})


def write_boxes_scores_labels(path, *, fractions=False, frame_size=False, batch=True, names=""):
    """The same in the layout of torchvision or, with `frame_size`, of RT-DETR: RGB from 0 to 1 goes in.

    Args:
        path: the file.
        fractions: whether boxes are parts of the picture instead of pixels.
        frame_size: whether the graph is told the size of the frame, and gives boxes in its pixels.
        batch: whether boxes, scores and labels have a first axis of size 1.
        names: the file's metadata `names`; none by default.
    """
    boxes = cells() / (SIDE if fractions or frame_size else 1)
    nodes, initializers = _colour_scores("image", 1.0, rgb=True)
    given = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIDE, SIDE])]
    nodes += [
        helper.make_node("ReduceMax", ["class_scores", "last_axis"], ["scores_1"], keepdims=0),
        helper.make_node("ArgMax", ["class_scores"], ["labels_1"], axis=2, keepdims=0),
    ]
    initializers += [
        numpy_helper.from_array(np.array([2], np.int64), "last_axis"),
        numpy_helper.from_array(np.array([0], np.int64), "first_axis"),
        numpy_helper.from_array(boxes[None], "cells"),
    ]
    if frame_size:
        given.append(helper.make_tensor_value_info("orig_target_sizes", TensorProto.INT64, [1, 2]))
        nodes += [
            helper.make_node("Cast", ["orig_target_sizes"], ["size"], to=TensorProto.FLOAT),
            helper.make_node("Concat", ["size", "size"], ["corners"], axis=1),
            helper.make_node("Mul", ["cells", "corners"], ["boxes_1"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["cells"], ["boxes_1"]))
    for name in ("boxes", "scores", "labels"):
        operator, more = ("Identity", []) if batch else ("Squeeze", ["first_axis"])
        nodes.append(helper.make_node(operator, [f"{name}_1", *more], [name]))
    first = [1] if batch else []
    answers = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [*first, "objects", 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [*first, "objects"]),
        helper.make_tensor_value_info("labels", TensorProto.INT64, [*first, "objects"]),
    ]
    return _save(path, nodes, given, answers, initializers, {"names": names} if names else {})


def write_other(path, inputs, outputs):
    """A graph with these float inputs and outputs that does nothing."""
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    answers = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    initializers = [numpy_helper.from_array(np.zeros(shape, np.float32), f"{n}_0") for n, shape in outputs.items()]
    nodes = [helper.make_node("Identity", [f"{name}_0"], [name]) for name in outputs]
    return _save(path, nodes, given, answers, initializers)


def squares(width, height, *named):
    """A black frame with squares of a colour, each given by its class and its box."""
    frame = np.zeros((height, width, 3), np.uint8)
    for name, (left, top, right, bottom) in named:
        frame[top:bottom, left:right] = COLOURS_BGR[name]
    return frame


def _colour_scores(picture, white, rgb=False):
    """Nodes from a picture [1, 3, S, S] to `class_scores` [1, A, 80]: the mean of a colour in every cell."""
    nodes = []
    for stride in STRIDES:
        pooled, flat = f"pooled_{stride}", f"flat_{stride}"
        nodes.append(
            helper.make_node("AveragePool", [picture], [pooled], kernel_shape=[stride] * 2, strides=[stride] * 2)
        )
        nodes.append(helper.make_node("Reshape", [pooled, "flat_shape"], [flat]))
    nodes += [
        helper.make_node("Concat", [f"flat_{stride}" for stride in STRIDES], ["means"], axis=2),
        helper.make_node("Transpose", ["means"], ["rows"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["rows", "to_classes"], ["class_scores"]),
    ]
    to_classes = np.zeros((3, len(COCO_CLASSES)), np.float32)
    for channel, name in enumerate((RED, GREEN, BLUE) if rgb else (BLUE, GREEN, RED)):
        to_classes[channel, COCO_CLASSES.index(name)] = 1 / white
    return nodes, [
        numpy_helper.from_array(np.array([1, 3, -1], np.int64), "flat_shape"),
        numpy_helper.from_array(to_classes, "to_classes"),
    ]


def _save(path, nodes, inputs, outputs, initializers, metadata=None):
    graph = helper.make_graph(nodes, "detector", inputs, outputs, initializer=initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, metadata or {})
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path
