"""Several networks on one and the same frame, the detector YOLOX-nano among them.

Some know ImageNet's thousand classes, each in its way, and what captions speak of; the detector knows where things are,
the small ones among them. A visual token is what all have of a cell of the coarsest grid, so the captioner reads off
what is found there.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.vision.backbone import Backbone, Seen
from training.vision.efficientnet_lite import EfficientNetLite1
from training.vision.inverted_residuals import InvertedResiduals
from training.vision.mobilenet_v2 import MobileNetV2
from training.vision.yolox import STRIDES, YoloxNano

GRIDS: dict[str, type[InvertedResiduals]] = {grid.kind: grid for grid in (MobileNetV2, EfficientNetLite1)}
"""By their names."""

SCORE_SCALE = 4.0
"""Class scores in a token are multiplied by it: the grids' features reach from 0 to 6."""


class SideBySide(Backbone):
    """Grids, and a detector where objects shall be found."""

    kind: ClassVar[str] = "side_by_side"

    def __init__(
        self, grids: Sequence[InvertedResiduals | str], yolox: YoloxNano | Sequence[str] | None = None
    ) -> None:
        """
        Args:
            grids: with their weights; or, by their names, new ones.
            yolox: with its weights; or, by the names of what it finds in the order of the scores, a new one.
        """
        super().__init__()
        self.grids = nn.ModuleList(GRIDS[grid]() if isinstance(grid, str) else grid for grid in grids)
        self.yolox = yolox if yolox is None or isinstance(yolox, YoloxNano) else YoloxNano(yolox)
        self.token_width = sum(grid.token_width for grid in self._grids)
        if self.yolox is not None:
            self.class_names = self.yolox.class_names
            self.token_width += YoloxNano.level_widths[-1] + len(self.class_names)

    @property
    def _grids(self) -> list[InvertedResiduals]:
        return [grid for grid in self.grids if isinstance(grid, InvertedResiduals)]

    @property
    def description(self) -> str:  # type: ignore[override]  # of what it is made of
        names = [grid.description.removesuffix(", 7x7 grid") for grid in self._grids]
        return f"{' and '.join([*names, *(['YOLOX-nano'] if self.yolox else [])])}, 7x7 grid"

    @property
    def learns(self) -> nn.Module:
        """The grids alone: captions say nothing of boxes, and the detector shall go on finding what it finds."""
        return self.grids

    @property
    def options(self) -> dict[str, Any]:
        return {"grids": [grid.kind for grid in self._grids], "yolox": [*self.class_names] if self.yolox else None}

    @property
    def fine_layers(self) -> list[nn.Module]:
        return [layer for grid in self._grids for layer in grid.fine_layers]

    def fold_channel_order(self) -> None:
        for grid in self._grids:
            grid.fold_channel_order()

    def see(self, pixels: Tensor) -> Seen:
        tokens = [grid.see(pixels).tokens for grid in self._grids]
        if self.yolox is None:
            return Seen(torch.cat(tokens, dim=-1))
        with torch.no_grad():
            answers = self.yolox.answers(pixels)
            # Of all cells that lie in a cell of the coarsest map, the surest.
            surest = torch.stack([
                functional.max_pool2d(scores, STRIDES[-1] // stride)
                for stride, scores in zip(STRIDES, answers.class_scores, strict=True)
            ]).amax(dim=0)  # fmt: skip
            beside = torch.cat([answers.levels[-1], surest * SCORE_SCALE], dim=1).flatten(2).transpose(1, 2)
            found = self.yolox.found(answers)
        return Seen(torch.cat([*tokens, beside.to(tokens[0])], dim=-1), found)
