"""The vision graph: a uint8 BGR frame in, visual tokens out."""

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.torch_to_onnx import to_onnx
from training.models.mobilenet_v2 import MobileNetV2

IMAGE_SIZE = 224
GRID = (7, 7)


class _Tokens(nn.Module):
    """The backbone with the channel order folded into the first convolution's weights."""

    def __init__(self, backbone: MobileNetV2) -> None:
        super().__init__()
        self.backbone = MobileNetV2()
        self.backbone.load_state_dict(backbone.state_dict())
        first = self.backbone.convolutions()[0]
        first.weight.data = first.weight.data.flip(1)

    def forward(self, image_bgr: Tensor) -> Tensor:
        # Floats first: TensorRT takes a uint8 input, and can do nothing with it but cast it.
        x = image_bgr.float().permute(0, 3, 1, 2) * (1 / 127.5) - 1.0
        return self.backbone.layers(x).flatten(2).transpose(1, 2)


def export_vision(backbone: MobileNetV2) -> onnx.ModelProto:
    """``image_bgr`` (B, 224, 224, 3) uint8 -> ``tokens`` (B, 49, 1280) float32; B is dynamic."""
    return to_onnx(
        _Tokens(backbone),
        {"image_bgr": torch.zeros(2, IMAGE_SIZE, IMAGE_SIZE, 3, dtype=torch.uint8)},
        ["tokens"],
        {"image_bgr": {0: Dim("batch")}},
    )
