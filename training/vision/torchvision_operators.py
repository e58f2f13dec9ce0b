"""Makes torchvision importable beside a torch of another build, for timm and transformers, which import it."""

import importlib
import importlib.util

import torch

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
