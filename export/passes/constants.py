"""Constants of a graph, as passes read and make them."""

import numpy as np
import onnx_ir as ir


def constant_of(value: ir.Value | None) -> np.ndarray | None:
    """Return the values of an initializer; None where ``value`` is computed or an input."""
    if value is None or value.producer() is not None or value.const_value is None:
        return None
    return value.const_value.numpy()


def new_constant(graph: ir.Graph, name: str, values: np.ndarray) -> ir.Value:
    """Add an initializer to a graph."""
    tensor = ir.tensor(values, name=name)
    value = ir.Value(name=name, const_value=tensor, shape=ir.Shape(values.shape), type=ir.TensorType(tensor.dtype))
    graph.register_initializer(value)
    return value
