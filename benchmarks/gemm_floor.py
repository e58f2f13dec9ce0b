"""An ONNX graph of only the matrix products with weights that a caption needs."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from training.models.smart import SmartConfig


def gemm_floor(config: SmartConfig, image_tokens: int, beam_size: int, max_words: int) -> onnx.ModelProto:
    """Build a graph with input ``x`` (image_tokens, token_width) float32 and output ``y`` (beam_size, d).

    It has the encoder's products and the decoder's keys and values of the image once, and the decoder's products for
    every word in a Loop, the first word for one beam. Layers that share an input are one product. Attention,
    normalisation and search are left out. Weights are random, scaled so that values neither grow nor vanish.
    """
    builder = _Builder()
    d, inner = config.d_model, config.d_ff
    x = builder.multiply("x", config.token_width, d)
    for _ in range(config.encoder_layers):
        x = builder.first(builder.multiply(x, d, 3 * d), d)
        x = builder.multiply(x, d, d)
        x = builder.multiply(builder.multiply(x, d, inner), inner, d)
    image = builder.first(builder.multiply(x, d, 2 * config.decoder_layers * d), d)

    step = _Builder("step_")
    y = "step_in"
    for _ in range(config.decoder_layers):
        y = step.multiply(step.first(step.multiply(y, d, 3 * d), d), d, d)
        y = step.multiply(step.multiply(y, d, d), d, d)
        y = step.multiply(step.multiply(y, d, inner), inner, d)
    y = step.first(step.multiply(y, d, config.vocabulary_size), d)
    step.nodes += [
        helper.make_node("Identity", ["step_go_on"], ["step_going_on"]),
        # One row becomes beam_size rows after the first word.
        helper.make_node("Expand", [y, "beams"], ["step_out"]),
    ]
    body = helper.make_graph(
        step.nodes,
        "word",
        [
            helper.make_tensor_value_info("step_number", TensorProto.INT64, []),
            helper.make_tensor_value_info("step_go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("step_in", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("step_going_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("step_out", TensorProto.FLOAT, None),
        ],
        initializer=[*step.weights, numpy_helper.from_array(np.array([beam_size, d]), "beams")],
    )
    constants = {"words": np.array(max_words), "start": np.array([0]), "stop": np.array([1]), "axis": np.array([0])}
    nodes = [
        *builder.nodes,
        helper.make_node("Slice", [image, "start", "stop", "axis"], ["begin"]),
        helper.make_node("Loop", ["words", "", "begin"], ["y"], body=body),
    ]
    graph = helper.make_graph(
        nodes,
        "gemm_floor",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [image_tokens, config.token_width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [beam_size, d])],
        initializer=[*builder.weights, *(numpy_helper.from_array(value, name) for name, value in constants.items())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


class _Builder:
    """Nodes and weights of one graph, each with a unique name."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix, self._random = prefix, np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def multiply(self, value: str, inputs: int, outputs: int) -> str:
        """Multiply ``value`` by a new weight; returns the product's name."""
        weight, product = f"{self._prefix}w{len(self.nodes)}", f"{self._prefix}p{len(self.nodes)}"
        matrix = self._random.standard_normal((inputs, outputs), np.float32) / np.float32(np.sqrt(inputs))
        self.weights.append(numpy_helper.from_array(matrix, weight))
        self.nodes.append(helper.make_node("MatMul", [value, weight], [product]))
        return product

    def first(self, value: str, width: int) -> str:
        """Take the first ``width`` columns as the input of the next product; returns their name."""
        name = f"{self._prefix}f{len(self.nodes)}"
        bounds = [numpy_helper.from_array(np.array([each]), f"{name}_{key}") for key, each in
                  (("from", 0), ("to", width), ("axis", 1))]  # fmt: skip
        self.weights += bounds
        self.nodes.append(helper.make_node("Slice", [value, *(each.name for each in bounds)], [name]))
        return name
