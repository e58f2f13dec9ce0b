"""Several networks on the same frame: grid backbones, and optionally the detector YOLOX-nano.

A visual token concatenates the features that all networks have of one cell of the grid; with a detector it also
holds the highest score of each class in that cell.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.vision.backbone import Backbone, ImageFeatures, pixels_of
from training.vision.inverted_residuals import GRIDS, InvertedResiduals
from training.vision.yolox import STRIDES, YoloxNano, YoloxOutput

SCORE_SCALE = 4.0
"""Factor of the class scores in a token, which brings them nearer to the range of the grid features, 0 to 6."""


class SideBySide(Backbone):
    """Grid backbones and, optionally, a detector."""

    kind: ClassVar[str] = "side_by_side"

    def __init__(
        self, grids: Sequence[InvertedResiduals | str], yolox: YoloxNano | Sequence[str] | None = None
    ) -> None:
        """
        Args:
            grids: networks with their weights, or names of networks that are constructed anew.
            yolox: a detector with its weights, or the class names of a detector that is constructed anew.
        """
        super().__init__()
        self.grids = nn.ModuleList(GRIDS[grid]() if isinstance(grid, str) else grid for grid in grids)
        self.yolox = yolox if yolox is None or isinstance(yolox, YoloxNano) else YoloxNano(yolox)
        self._detector_width = 0
        if self.yolox is not None:
            self.class_names = self.yolox.class_names
            self._detector_width = YoloxNano.level_widths[-1] + len(self.class_names)
        self.token_width = sum(grid.token_width for grid in self._grids) + self._detector_width

    @property
    def early_width(self) -> int:
        rows, columns = self.grid
        return sum(grid.early_width for grid in self._grids) + rows * columns * self._detector_width

    @property
    def _grids(self) -> list[InvertedResiduals]:
        return [grid for grid in self.grids if isinstance(grid, InvertedResiduals)]

    @property
    def description(self) -> str:  # type: ignore[override]  # depends on the networks of the instance
        return " and ".join([*(grid.description for grid in self._grids), *(["YOLOX-nano"] if self.yolox else [])])

    def set_image_size(self, size: int) -> None:
        super().set_image_size(size)
        for grid in self._grids:
            grid.set_image_size(size)
        if self.yolox is not None:
            self.yolox.set_image_size(size)

    @property
    def trainable(self) -> nn.Module:
        """The grid backbones alone: captions have no boxes, so training on them would degrade the detector."""
        return self.grids

    @property
    def options(self) -> dict[str, Any]:
        return {"grids": [grid.kind for grid in self._grids], "yolox": [*self.class_names] if self.yolox else None}

    @property
    def early_layers(self) -> list[nn.Module]:
        return [layer for grid in self._grids for layer in grid.early_layers]

    def fold_channel_order(self) -> None:
        for grid in self._grids:
            grid.fold_channel_order()

    def early_features(self, image_bgr: Tensor) -> Tensor:
        early = [grid.early_features(image_bgr) for grid in self._grids]
        if self.yolox is not None:
            of_detector = _detector_tokens(self.yolox.output(pixels_of(image_bgr)))
            early.append(of_detector.flatten(1).to(early[0]))
        return torch.cat(early, dim=-1)

    def tokens_of_early_features(self, early: Tensor) -> Tensor:
        widths = [grid.early_width for grid in self._grids]
        *of_grids, of_detector = early.split([*widths, early.shape[1] - sum(widths)], dim=1)
        tokens = [grid.tokens_of_early_features(part) for grid, part in zip(self._grids, of_grids, strict=True)]
        if self.yolox is not None:
            tokens.append(of_detector.unflatten(1, (-1, self._detector_width)).to(tokens[0]))
        return torch.cat(tokens, dim=-1)

    def features_of_pixels(self, pixels: Tensor) -> ImageFeatures:
        tokens = [grid.features_of_pixels(pixels).tokens for grid in self._grids]
        if self.yolox is None:
            return ImageFeatures(torch.cat(tokens, dim=-1))
        with torch.no_grad():
            output = self.yolox.output(pixels)
            of_detector, detections = _detector_tokens(output), self.yolox.raw_detections(output)
        return ImageFeatures(torch.cat([*tokens, of_detector.to(tokens[0])], dim=-1), detections)


BACKBONES: dict[str, type[Backbone]] = {**GRIDS, SideBySide.kind: SideBySide}
"""All backbones by the name that checkpoints have for them."""


def _detector_tokens(output: YoloxOutput) -> Tensor:
    """Return a detector's part of the tokens, (B, N, width): its coarsest map, and the highest class scores."""
    # The maximum over all cells of the finer maps that lie in a cell of the coarsest one.
    best_scores = torch.stack([
        functional.max_pool2d(scores, STRIDES[-1] // stride)
        for stride, scores in zip(STRIDES, output.class_scores, strict=True)
    ]).amax(dim=0)  # fmt: skip
    return torch.cat([output.levels[-1], best_scores * SCORE_SCALE], dim=1).flatten(2).transpose(1, 2)
