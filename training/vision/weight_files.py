"""Reading the convolutions of released weight files, and the parameters of ONNX graphs, as plain arrays.

The files are read as data, so the frameworks that wrote them are not needed. Quantised weights become float32; a batch
normalisation that a file stores beside its convolution is folded into it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from training.errors import BackboneError

if TYPE_CHECKING:
    from onnx import GraphProto

Layers = list[tuple[np.ndarray, np.ndarray]]
"""For each convolution, in the order of the forward pass, float32 weights (outputs, inputs / groups, kh, kw) and bias
(outputs,)."""
QUANTISED = "_quantized", "_scale"
"""Suffixes that ONNX Runtime's quantiser gives a weight's 8-bit values and the steps of its columns."""
NORMALISATION_EPSILON = 1e-3
"""Epsilon of EfficientNet's batch normalisation."""


def read_parameters(content: bytes) -> dict[str, np.ndarray]:
    """Read the constants of an ONNX graph, and of the bodies of its loops, by name.

    Those that are stored as float16 or in 8 bits become float32.
    """
    import onnx

    return _parameters(*with_bodies(onnx.load_model_from_string(content).graph))


def read_onnx(path: Path) -> Layers:
    """Read the convolutions of an ONNX file, in graph order.

    Raises:
        BackboneError: the file is not ONNX.
    """
    import onnx

    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # that of protobuf, which is no dependency of its own
        raise BackboneError(f"{path}: not an ONNX file ({error})") from None
    arrays = _parameters(graph)
    layers = []
    for node in graph.node:
        if node.op_type == "Conv":
            weight = arrays[node.input[1]]
            # Exporters omit a bias that is all zeros.
            bias = arrays[node.input[2]] if len(node.input) > 2 else np.zeros(len(weight), np.float32)
            layers.append((weight, bias))
    return layers


def with_bodies(graph: "GraphProto") -> "Iterator[GraphProto]":
    """Yield a graph and the bodies of its loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from with_bodies(attribute.g)


def _parameters(*graphs: "GraphProto") -> dict[str, np.ndarray]:
    """Read the constants of a graph and of the bodies in it, which may use those of the graph around them."""
    from onnx import numpy_helper

    stored = {tensor.name: numpy_helper.to_array(tensor) for graph in graphs for tensor in graph.initializer}
    arrays = dict(stored)
    for node in (node for graph in graphs for node in graph.node):
        if node.op_type == "MatMulInteger" and node.input[1].endswith(QUANTISED[0]) and node.input[1] in arrays:
            name = node.input[1].removesuffix(QUANTISED[0])
            scale = arrays.pop(name + QUANTISED[1])
            zero = stored[node.input[3]].astype(np.float32)  # layers of one width share it
            arrays.pop(node.input[3], None)
            arrays[name] = (arrays.pop(node.input[1]) - zero) * scale
        if not node.input or node.input[0] not in stored:
            continue
        if node.op_type == "Cast":  # weights that a bundle stores as float16
            arrays[node.output[0]] = arrays.pop(node.input[0]).astype(np.float32)
        elif node.op_type == "DequantizeLinear":
            values, scale, *given = (stored[name].astype(np.float32) for name in node.input)
            zero = given[0] if given else np.zeros_like(scale)  # bundles omit the zero point
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
            if scale.ndim:
                shape = [1] * values.ndim
                shape[axis] = -1
                scale, zero = scale.reshape(shape), zero.reshape(shape)
            arrays[node.output[0]] = (values - zero) * scale
            for name in node.input:
                arrays.pop(name, None)
    return arrays


def read_tflite(path: Path) -> Layers:
    """Read the convolutions of a fully quantised TensorFlow Lite file; its activation scales are not used.

    Raises:
        BackboneError: the file is not TensorFlow Lite.
    """
    import tflite

    content = path.read_bytes()
    if not tflite.Model.ModelBufferHasIdentifier(content, 0):
        raise BackboneError(f"{path}: not a TensorFlow Lite file")
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    dtypes = {tflite.TensorType.INT8: np.int8, tflite.TensorType.INT32: np.int32}

    def dequantise(index: int) -> np.ndarray:
        tensor = graph.Tensors(index)
        raw = model.Buffers(tensor.Buffer()).DataAsNumpy()
        values = np.frombuffer(raw.tobytes(), dtypes[tensor.Type()]).reshape(tensor.ShapeAsNumpy())
        quantisation: Any = tensor.Quantization()
        shape = [1] * values.ndim
        shape[quantisation.QuantizedDimension()] = -1
        return values.astype(np.float32) * quantisation.ScaleAsNumpy().astype(np.float32).reshape(shape)

    layers = []
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if kind == tflite.BuiltinOperator.CONV_2D:
            weight = dequantise(operator.Inputs(1)).transpose(0, 3, 1, 2)  # O, kh, kw, I -> O, I, kh, kw
        elif kind == tflite.BuiltinOperator.DEPTHWISE_CONV_2D:
            weight = dequantise(operator.Inputs(1)).transpose(3, 0, 1, 2)  # 1, kh, kw, O -> O, 1, kh, kw
        else:
            continue
        layers.append((weight, dequantise(operator.Inputs(2))))
    return layers


def read_torch(path: Path) -> Layers:
    """Read the convolutions of a torch state dict, the batch normalisation after each one folded in.

    Raises:
        BackboneError: the file is not a state dict, or holds objects other than tensors.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types for malformed archives
        raise BackboneError(f"{path}: not a state dict of torch: {str(error).splitlines()[0]}") from None
    layers, kernel = [], None
    for name, tensor in state.items():
        if tensor.ndim == 4:
            kernel = tensor.double()
        elif kernel is not None and name.endswith(".running_var"):
            norm = {
                part: state[name.replace("running_var", part)].double() for part in ("weight", "bias", "running_mean")
            }
            scale = norm["weight"] / (tensor.double() + NORMALISATION_EPSILON).sqrt()
            folded = kernel * scale[:, None, None, None], norm["bias"] - norm["running_mean"] * scale
            layers.append((folded[0].float().numpy(), folded[1].float().numpy()))
            kernel = None
    return layers


def copy_convolutions(layers: Layers, convolutions: Sequence[nn.Conv2d], path: Path, network: str) -> None:
    """Copy the weights of a file into the convolutions of a network, which are in the order of the forward pass.

    Raises:
        BackboneError: the file has another number of convolutions, or one of another shape.
    """
    if len(layers) != len(convolutions):
        raise BackboneError(f"{path}: {len(layers)} convolutions, {network} has {len(convolutions)}")
    with torch.no_grad():
        for index, (convolution, (weight, bias)) in enumerate(zip(convolutions, layers, strict=True)):
            if tuple(convolution.weight.shape) != weight.shape:
                expected = tuple(convolution.weight.shape)
                raise BackboneError(f"{path}: convolution {index} is {weight.shape}, {network} has {expected}")
            convolution.weight.copy_(torch.from_numpy(np.array(weight)))
            assert convolution.bias is not None
            convolution.bias.copy_(torch.from_numpy(np.array(bias)))
