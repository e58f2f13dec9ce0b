"""Graphs of a few layers, and running them."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.export.graphs import session_of

RANDOM = np.random.default_rng(0)


def weights(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def graph_of(nodes, inputs, outputs, constants):
    """A graph of float32 inputs and outputs."""
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        initializer=[numpy_helper.from_array(values, name) for name, values in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def results(model, **inputs):
    return session_of(model).run(None, inputs)


def kinds(model):
    return [node.op_type for node in model.graph.node]
