"""Makes torchvision importable beside a torch of another build, for timm and transformers, which import it."""

import importlib
import importlib.util
from typing import Any

import torch

from training.errors import BackboneError

_DECLARED: list[torch.library.Library] = []


def declare_torchvision_operators() -> None:
    """Declare the operators that torchvision registers shapes for, where its own library cannot be loaded.

    The wheel of torchvision on PyPI is built for CUDA. Beside a CPU torch its library cannot be loaded, so that its
    import ends with "operator torchvision::nms does not exist". No backbone computes with these operators.
    """
    if _DECLARED or importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _DECLARED.append(library)  # it is undeclared when the object is freed


def import_library(name: str) -> Any:
    """Import timm or transformers.

    Raises:
        BackboneError: it is not installed.
    """
    declare_torchvision_operators()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise BackboneError(
            f"backbones of {name} need that package: pip install 'smart_caption_ros[backbones]'"
        ) from None
