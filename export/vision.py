"""The vision graph: from a uint8 BGR frame to visual tokens and, if the backbone has a detector, objects."""

import copy

import onnx
import torch
from torch import Tensor, nn

from export.shapes import BATCH, Size, TensorSpec
from export.torch_to_onnx import to_onnx
from training.vision.backbone import Backbone

TOKENS, BOXES, CLASS_SCORES = "tokens", "boxes", "class_scores"


class _Vision(nn.Module):
    """The backbone with the channel order folded into its weights."""

    def __init__(self, backbone: Backbone, detects: bool) -> None:
        super().__init__()
        self.detects = detects
        self.backbone = copy.deepcopy(backbone)
        self.backbone.fold_channel_order()

    def forward(self, image_bgr: Tensor) -> tuple[Tensor, ...]:
        # Cast first: TensorRT supports nothing else on a uint8 input.
        tokens, found = self.backbone.features_of_pixels(image_bgr.float().permute(0, 3, 1, 2))
        if found is None or not self.detects:
            return (tokens,)
        return tokens, found.boxes_xyxy, found.class_scores


def export_vision(backbone: Backbone, *, detects: bool = True) -> onnx.ModelProto:
    """Export a backbone: ``image_bgr`` (B, size, size, 3) uint8 -> ``tokens`` (B, N, token width) float32.

    The size and the N cells are the backbone's; B is dynamic.

    If the backbone has a detector and ``detects`` is True, also ``boxes`` (B, A, 4) float32, xyxy in fractions
    of the frame, and ``class_scores`` (B, A, classes) float32, from 0 to 1.
    """
    return to_onnx(
        _Vision(backbone, detects),
        {"image_bgr": TensorSpec(torch.uint8, (Size(BATCH), backbone.image_size, backbone.image_size, 3))},
        [TOKENS, BOXES, CLASS_SCORES] if detects and backbone.class_names else [TOKENS],
    )
