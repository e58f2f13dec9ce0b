"""The vision graph: a uint8 BGR frame in, visual tokens out, and objects where there is a head that finds them."""

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.torch_to_onnx import to_onnx
from training.detection.head import DetectionHead
from training.models.mobilenet_v2 import MobileNetV2

IMAGE_SIZE = 224
GRID = (7, 7)


TOKENS, BOXES, CLASS_SCORES = "tokens", "boxes", "class_scores"


class _Vision(nn.Module):
    """The backbone with the channel order folded into the first convolution's weights, and the head."""

    def __init__(self, backbone: MobileNetV2, detector: DetectionHead | None) -> None:
        super().__init__()
        self.detector = detector
        self.backbone = MobileNetV2()
        self.backbone.load_state_dict(backbone.state_dict())
        first = self.backbone.convolutions()[0]
        first.weight.data = first.weight.data.flip(1)

    def forward(self, image_bgr: Tensor) -> tuple[Tensor, ...]:
        # Floats first: TensorRT takes a uint8 input, and can do nothing with it but cast it.
        x = image_bgr.float().permute(0, 3, 1, 2) * (1 / 127.5) - 1.0
        tokens, levels = self.backbone.pyramid_of(x)
        if self.detector is None:
            return (tokens,)
        found = self.detector(levels)
        return tokens, found.boxes_xyxy, found.class_logits.sigmoid()


def export_vision(backbone: MobileNetV2, detector: DetectionHead | None = None) -> onnx.ModelProto:
    """``image_bgr`` (B, 224, 224, 3) uint8 -> ``tokens`` (B, 49, 1280) float32; B is dynamic.

    With a detector also ``boxes`` (B, A, 4) float32, xyxy in fractions of the frame, and ``class_scores``
    (B, A, classes) float32, from 0 to 1.
    """
    return to_onnx(
        _Vision(backbone, detector),
        {"image_bgr": torch.zeros(2, IMAGE_SIZE, IMAGE_SIZE, 3, dtype=torch.uint8)},
        [TOKENS, BOXES, CLASS_SCORES] if detector is not None else [TOKENS],
        {"image_bgr": {0: Dim("batch")}},
    )
