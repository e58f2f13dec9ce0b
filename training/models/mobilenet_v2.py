"""MobileNetV2 (Sandler et al., CVPR 2018) as a grid-feature backbone.

Batch normalisation is folded into the convolutions, as in the released inference files that its weights come
from (:mod:`training.backbones`), so every convolution has a bias and fine-tuning has no running statistics.
Strided convolutions pad at the bottom and right only, as TensorFlow's SAME does for even sizes.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.backbone import Backbone, Seen

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


class MobileNetV2(Backbone):
    """Width 1.0, without pooling and classifier: 52 convolutions, 2.2 M parameters."""

    kind: ClassVar[str] = "mobilenet_v2"
    description: ClassVar[str] = "MobileNetV2 1.0, 7x7 grid"
    token_width = 1280

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
        self._takes_bgr = False

    def fold_channel_order(self) -> None:
        first = self.convolutions()[0]
        first.weight.data = first.weight.data.flip(1)
        self._takes_bgr = not self._takes_bgr

    def see(self, pixels: Tensor) -> Seen:
        # The published weights expect RGB in [-1, 1]: x / 127.5 - 1.
        x = (pixels if self._takes_bgr else pixels.flip(1)) * (1 / 127.5) - 1.0
        return Seen(self.layers(x.contiguous(memory_format=torch.channels_last)).flatten(2).transpose(1, 2))

    def convolutions(self) -> list[nn.Conv2d]:
        """The convolutions in the order in which a frame passes them."""
        return [module for module in self.modules() if isinstance(module, nn.Conv2d)]
