"""MobileNetV2 (Sandler et al., CVPR 2018) as a grid-feature backbone.

Batch normalisation is folded into the convolutions, as in the released inference files that its weights come
from (:mod:`training.backbones`), so every convolution has a bias and fine-tuning has no running statistics.
Strided convolutions pad at the bottom and right only, as TensorFlow's SAME does for even sizes.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

# (expansion t, output channels c, repeats n, first stride s): Table 2 of the paper.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_LAST_OF_STRIDE = (7, 14)
"""Layers whose expansion is the last to see the grid of stride 8 and 16: SSDLite's places to look for objects."""


class Convolution(nn.Module):
    """Convolution with a folded batch normalisation, then ReLU6 unless ``linear``."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        linear: bool = False,
    ) -> None:
        super().__init__()
        same = 0 if stride == 2 or kernel == 1 else kernel // 2
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=same, groups=groups)
        self.pad_bottom_right = stride == 2
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        if self.pad_bottom_right:
            x = functional.pad(x, (0, 1, 0, 1))
        x = self.convolution(x)
        return x if self.linear else functional.relu6(x)  # its gradient is one pass, that of clamp four


class InvertedResidual(nn.Module):
    """Expand, filter depthwise, project; with a skip connection where the shape allows it (Fig. 4)."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers = [Convolution(inputs, hidden)] if expansion != 1 else []
        layers.append(Convolution(hidden, hidden, kernel=3, stride=stride, groups=hidden))
        layers.append(Convolution(hidden, outputs, linear=True))
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.residual else y


class Pyramid(NamedTuple):
    """One pass over a batch of frames of H x W."""

    tokens: Tensor
    """(B, H/32 * W/32, 1280), row by row."""
    levels: tuple[Tensor, Tensor, Tensor]
    """Feature maps at strides 8, 16 and 32: (B, 192, H/8, W/8), (B, 576, H/16, W/16), (B, 1280, H/32, W/32)."""


class MobileNetV2(nn.Module):
    """Width 1.0, without pooling and classifier: 52 convolutions, 2.2 M parameters."""

    token_width = 1280
    level_widths = (192, 576, 1280)

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [Convolution(3, 32, kernel=3, stride=2)]
        channels = 32
        for expansion, outputs, repeats, first_stride in _STAGES:
            for repeat in range(repeats):
                layers.append(InvertedResidual(channels, outputs, first_stride if repeat == 0 else 1, expansion))
                channels = outputs
        layers.append(Convolution(channels, self.token_width))
        self.layers = nn.Sequential(*layers)

    def forward(self, image_bgr: Tensor) -> Tensor:
        """Grid features of a frame.

        Args:
            image_bgr: (B, H, W, 3) uint8, BGR, H and W multiples of 32.

        Returns:
            (B, H/32 * W/32, 1280) float tokens, row by row.
        """
        return self.layers(_normalised(image_bgr)).flatten(2).transpose(1, 2)

    def pyramid(self, image_bgr: Tensor) -> Pyramid:
        """Grid features of a frame, and the finer maps on the way to them; arguments as :meth:`forward`."""
        return self.pyramid_of(_normalised(image_bgr))

    def pyramid_of(self, x: Tensor) -> Pyramid:
        """The same of frames as the first convolution takes them, (B, 3, H, W)."""
        finer = []
        for index, layer in enumerate(self.layers):
            if index in _LAST_OF_STRIDE:
                assert isinstance(layer, InvertedResidual)  # and one that shrinks, so without a skip connection
                expand, *rest = layer.layers
                x = expand(x)
                finer.append(x)
                for module in rest:
                    x = module(x)
            else:
                x = layer(x)
        return Pyramid(x.flatten(2).transpose(1, 2), (finer[0], finer[1], x))

    def convolutions(self) -> list[nn.Conv2d]:
        """The convolutions in the order in which a frame passes them."""
        return [module for module in self.modules() if isinstance(module, nn.Conv2d)]


def _normalised(image_bgr: Tensor) -> Tensor:
    # The published weights expect RGB in [-1, 1]: x / 127.5 - 1.
    x = image_bgr.permute(0, 3, 1, 2).flip(1).float() * (1 / 127.5) - 1.0
    return x.contiguous(memory_format=torch.channels_last)
