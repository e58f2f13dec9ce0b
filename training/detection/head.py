"""The detection head: depthwise-separable convolutions on three maps of the captioner's backbone.

SSDLite's places in MobileNetV2 (Sandler et al., CVPR 2018, Sec. 6.2), a top-down feature pyramid over them (Lin et al.,
CVPR 2017) and no anchors: each cell of each map says how surely it is near the middle of an object of each class, and
which box the object has (FCOS: Tian et al., ICCV 2019). There is no normalisation in it, as there is none left in the
backbone, so that a batch may be computed in parts.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.data.photographs import IMAGE_SIZE
from training.models.mobilenet_v2 import Convolution, MobileNetV2

STRIDES = (8, 16, 32)
TYPICAL_SIZE = 4.0
"""Side of the box that a cell begins with, in strides."""
_RARE = 0.01  # how sure a new head is of every class
_LARGEST_LOG = 3.0  # of a box's side over the one that it began with; keeps exp finite


class Found(NamedTuple):
    """What a head says of a batch. A cells of all maps together, fine to coarse, row by row."""

    class_logits: Tensor
    """(B, A, classes) float32; their sigmoid is how sure the head is."""
    boxes_xyxy: Tensor
    """(B, A, 4) float32, fractions of the frame; they may reach out of it."""


class DetectionHead(nn.Module):
    """For frames of 224 x 224."""

    cells: Tensor
    strides: Tensor

    def __init__(self, class_names: Sequence[str], width: int = 128) -> None:
        """
        Args:
            class_names: what it finds, in the order of its scores.
            width: channels of its maps.
        """
        super().__init__()
        self.class_names, self.width = tuple(class_names), width
        self.laterals = nn.ModuleList(Convolution(inputs, width, linear=True) for inputs in MobileNetV2.level_widths)
        self.smoothers = nn.ModuleList(_separable(width) for _ in STRIDES)
        self.class_tower = nn.Sequential(_separable(width), _separable(width))
        self.box_tower = nn.Sequential(_separable(width), _separable(width))
        self.class_scores = nn.Conv2d(width, len(self.class_names), 1)
        self.box_shapes = nn.Conv2d(width, 4, 1)
        self._initialise()
        cells, strides = _grid()
        self.register_buffer("cells", cells, persistent=False)
        self.register_buffer("strides", strides, persistent=False)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                assert module.bias is not None
                nn.init.zeros_(module.bias)
        assert self.class_scores.bias is not None
        for last in (self.class_scores, self.box_shapes):
            nn.init.normal_(last.weight, std=0.01)
        nn.init.constant_(self.class_scores.bias, -math.log((1 - _RARE) / _RARE))

    def forward(self, levels: Sequence[Tensor]) -> Found:
        """
        Args:
            levels: of :class:`training.models.mobilenet_v2.Pyramid`.
        """
        maps = [lateral(level) for lateral, level in zip(self.laterals, levels, strict=True)]
        for fine in (1, 0):
            maps[fine] = maps[fine] + functional.interpolate(maps[fine + 1], scale_factor=2.0, mode="nearest")
        maps = [smoother(each) for smoother, each in zip(self.smoothers, maps, strict=True)]
        logits = torch.cat([_rows(self.class_scores(self.class_tower(each))) for each in maps], dim=1)
        shapes = torch.cat([_rows(self.box_shapes(self.box_tower(each))) for each in maps], dim=1)
        return Found(logits.float(), self._boxes(shapes.float()))

    def _boxes(self, shapes: Tensor) -> Tensor:
        """(B, A, 4): shifts of the centre in strides, and logarithms of width and height over the typical size."""
        centres = self.cells + shapes[..., :2] * self.strides
        half = shapes[..., 2:].clamp(-_LARGEST_LOG, _LARGEST_LOG).exp() * (self.strides * (TYPICAL_SIZE / 2))
        return torch.cat([centres - half, centres + half], dim=-1) * (1 / IMAGE_SIZE)


def _separable(width: int) -> nn.Sequential:
    return nn.Sequential(Convolution(width, width, kernel=3, groups=width), Convolution(width, width))


def _rows(maps: Tensor) -> Tensor:
    """(B, C, H, W) -> (B, H * W, C)"""
    return maps.flatten(2).transpose(1, 2)


def _grid() -> tuple[Tensor, Tensor]:
    """(A, 2) the cells' centres in pixels, and (A, 1) their strides."""
    cells, strides = [], []
    for stride in STRIDES:
        middles = (torch.arange(IMAGE_SIZE // stride) + 0.5) * stride
        rows, columns = torch.meshgrid(middles, middles, indexing="ij")
        cells.append(torch.stack([columns, rows], dim=-1).reshape(-1, 2))
        strides.append(torch.full((len(middles) ** 2, 1), float(stride)))
    return torch.cat(cells), torch.cat(strides)
