"""Convert released MobileNetV2 files to safetensors for :class:`training.models.mobilenet_v2.MobileNetV2`.

    python -m training.backbones FILE.onnx|FILE.tflite OUT.safetensors

Both kinds store int8 weights with a scale per output channel and folded batch normalisation; they are read as
data (no framework that wrote them is needed) and dequantised to float32. Convolutions are matched by the order
in which a frame passes them.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from training.models.mobilenet_v2 import MobileNetV2

# Where the released files come from, for the manifest of what is trained from them.
PROVENANCE = {
    "tf2_mobilenet_v2_1.0_224_ptq.tflite": {
        "name": "ImageNet, through the MobileNetV2 1.0/224 weights that Google Coral released "
        "(tf2_mobilenet_v2_1.0_224_ptq.tflite)",
        "terms": "weights Apache-2.0",
    },
    "mobilenetv2_float32.onnx": {
        "name": "ImageNet, through Keras' MobileNetV2 1.0/224 weights (mobilenetv2_float32.onnx)",
        "terms": "the file states no licence",
    },
}


class BackboneError(Exception):
    """A backbone file cannot be read or is not a MobileNetV2; the message says why."""


def read_onnx(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (outputs, inputs / groups, kh, kw) and bias (outputs,) of every Conv, float32, in graph order."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in arrays:
            values, scale, zero = (arrays[name].astype(np.float32) for name in node.input)
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
            if scale.ndim:
                shape = [1] * values.ndim
                shape[axis] = -1
                scale, zero = scale.reshape(shape), zero.reshape(shape)
            arrays[node.output[0]] = (values - zero) * scale
    return [(arrays[node.input[1]], arrays[node.input[2]]) for node in graph.node if node.op_type == "Conv"]


def read_tflite(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """As :func:`read_onnx` for a fully quantised TensorFlow Lite file; its activation scales are not used."""
    import tflite

    model = tflite.Model.GetRootAs(path.read_bytes(), 0)
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


READERS = {".onnx": read_onnx, ".tflite": read_tflite}


def load_backbone(path: Path) -> MobileNetV2:
    """A MobileNetV2 with the convolutions of a released file; a classifier behind them is left out.

    Raises:
        BackboneError: the file is missing, of an unknown kind, or holds other layers.
    """
    if path.suffix not in READERS:
        raise BackboneError(f"{path}: expected one of {', '.join(READERS)}")
    if not path.is_file():
        raise BackboneError(f"{path}: no such file; set SMART_CAPTION_DATA to the folder that holds backbones/")
    backbone = MobileNetV2()
    convolutions = backbone.convolutions()
    layers = READERS[path.suffix](path)[: len(convolutions)]
    if len(layers) < len(convolutions):
        raise BackboneError(f"{path}: {len(layers)} convolutions, MobileNetV2 has {len(convolutions)}")
    with torch.no_grad():
        for index, (convolution, (weight, bias)) in enumerate(zip(convolutions, layers, strict=True)):
            if tuple(convolution.weight.shape) != weight.shape:
                wanted = tuple(convolution.weight.shape)
                raise BackboneError(f"{path}: convolution {index} is {weight.shape}, MobileNetV2 has {wanted}")
            convolution.weight.copy_(torch.from_numpy(np.array(weight)))
            assert convolution.bias is not None
            convolution.bias.copy_(torch.from_numpy(np.array(bias)))
    return backbone.eval()


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    try:
        backbone = load_backbone(Path(sys.argv[1]))
    except BackboneError as error:
        raise SystemExit(f"error: {error}") from None
    save_file(backbone.state_dict(), sys.argv[2])


if __name__ == "__main__":
    main()
