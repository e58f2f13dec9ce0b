"""MobileNetV2 and YOLOX-nano side by side, on one and the same frame.

The one knows ImageNet's thousand classes and what captions speak of, the other where things are, the small ones among
them. A visual token is what both have of a cell of the coarsest grid, so the captioner reads off what is found there.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.backbone import Backbone, Seen
from training.models.mobilenet_v2 import MobileNetV2
from training.models.yolox import STRIDES, YoloxNano

SCORE_SCALE = 4.0
"""Class scores in a token are multiplied by it: the grid's features reach from 0 to 6."""


class MobileNetYolox(Backbone):
    """3.1 M parameters."""

    kind: ClassVar[str] = "mobilenet_v2+yolox_nano"
    description: ClassVar[str] = "MobileNetV2 1.0 and YOLOX-nano, 7x7 grid"

    def __init__(
        self, class_names: Sequence[str], mobilenet: MobileNetV2 | None = None, yolox: YoloxNano | None = None
    ) -> None:
        """
        Args:
            class_names: what is found, in the order of the scores.
            mobilenet, yolox: with their weights; new ones by default.
        """
        super().__init__()
        self.mobilenet, self.yolox = mobilenet or MobileNetV2(), yolox or YoloxNano(class_names)
        self.class_names = self.yolox.class_names
        self.token_width = MobileNetV2.token_width + YoloxNano.level_widths[-1] + len(self.class_names)

    @property
    def learns(self) -> nn.Module:
        """MobileNetV2 alone: captions say nothing of boxes, and the detector shall go on finding what it finds."""
        return self.mobilenet

    @property
    def options(self) -> dict[str, Any]:
        return {"class_names": self.class_names}

    def fold_channel_order(self) -> None:
        self.mobilenet.fold_channel_order()

    def see(self, pixels: Tensor) -> Seen:
        grid = self.mobilenet.see(pixels).tokens
        with torch.no_grad():
            answers = self.yolox.answers(pixels)
            # Of all cells that lie in a cell of the coarsest map, the surest.
            surest = torch.stack([
                functional.max_pool2d(scores, STRIDES[-1] // stride)
                for stride, scores in zip(STRIDES, answers.class_scores, strict=True)
            ]).amax(dim=0)  # fmt: skip
            beside = torch.cat([answers.levels[-1], surest * SCORE_SCALE], dim=1).flatten(2).transpose(1, 2)
            found = self.yolox.found(answers)
        return Seen(torch.cat([grid, beside.to(grid)], dim=-1), found)
