"""Grid backbones of inverted residual blocks (Sandler et al., CVPR 2018): MobileNetV2 and EfficientNet-Lite1.

Batch normalisation is folded into the convolutions, so every convolution has a bias and fine-tuning has no running
statistics. Strided convolutions pad one more row and column at the bottom and right, as TensorFlow's SAME does for even
sizes, because the released weights (:mod:`training.vision.released_weights`) were trained with it.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.vision.backbone import (
    IMAGE_SIZE,
    STRIDE,
    BackboneSpec,
    CachesEarlyLayers,
    ImageFeatures,
    pixels_of,
    token_grid,
)
from training.vision.depthwise import depthwise_convolution, same_padding

_EARLY_STRIDE = 8
"""Pixels of a frame that an early feature stands for, on each side."""


class Stage(NamedTuple):
    """A sequence of blocks with one number of output channels."""

    expansion: int
    outputs: int
    repeats: int
    stride: int
    """Stride of the first block; the others have stride 1."""
    kernel: int = 3


class Convolution(nn.Module):
    """Convolution with a folded batch normalisation, then ReLU6 unless ``linear``; padded as TensorFlow does."""

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
        before, after = same_padding(kernel, stride)
        same = before if before == after else 0
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=same, groups=groups)
        self.pad = None if before == after else (before, after, before, after)
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        convolution = self.convolution
        if convolution.groups > 1 and x.device.type == "cpu":
            assert convolution.bias is not None
            x = depthwise_convolution(x, convolution.weight, convolution.bias, convolution.stride[0])
        else:
            x = convolution(functional.pad(x, self.pad) if self.pad else x)
        # Its gradient takes one pass over memory, that of clamp four; in place it needs no memory.
        return x if self.linear else functional.relu6(x, inplace=True)


class InvertedResidual(nn.Module):
    """Expand, filter depthwise, project; with a skip connection where the shape allows it (Fig. 4)."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int, kernel: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers = [Convolution(inputs, hidden)] if expansion != 1 else []
        layers.append(Convolution(hidden, hidden, kernel, stride, groups=hidden))
        layers.append(Convolution(hidden, outputs, linear=True))
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.residual else y


class InvertedResiduals(CachesEarlyLayers):
    """A network of inverted residuals without pooling and classifier: a token for 32 x 32 pixels of a frame."""

    stages: ClassVar[tuple[Stage, ...]]
    pixel_mean: ClassVar[float]
    """Pixel value that is subtracted from all channels."""
    pixel_scale: ClassVar[float]
    """Pixel value that the difference is divided by."""
    token_width: ClassVar[int] = 1280

    def __init__(self) -> None:
        super().__init__()
        channels = 32
        layers: list[nn.Module] = [Convolution(3, channels, kernel=3, stride=2)]
        for stage in self.stages:
            for stride in (stage.stride, *[1] * (stage.repeats - 1)):
                layers.append(InvertedResidual(channels, stage.outputs, stride, stage.expansion, stage.kernel))
                channels = stage.outputs
        layers.append(Convolution(channels, self.token_width))
        self.layers = nn.Sequential(*layers)
        self._takes_bgr = False
        self._size = (IMAGE_SIZE, IMAGE_SIZE)

    @property
    def spec(self) -> BackboneSpec:
        width, height = self._size
        return BackboneSpec(
            preprocessing=Preprocessing(width, height),
            mean=(self.pixel_mean / 255,) * 3, std=(self.pixel_scale / 255,) * 3,
            rows=height // STRIDE, columns=width // STRIDE, token_width=self.token_width,
        )  # fmt: skip

    def set_image_size(self, width: int, height: int) -> None:
        if min(width, height) < STRIDE or width % STRIDE or height % STRIDE:
            raise ValueError(f"the size of frames must be a positive multiple of {STRIDE}, not {width} x {height}")
        self._size = (width, height)

    @property
    def early_width(self) -> int:
        width, height = self._size
        return (width // _EARLY_STRIDE) * (height // _EARLY_STRIDE) * self._early_stages[-1].outputs

    @property
    def early_layers(self) -> nn.Sequential:
        early = self.layers[: 1 + sum(stage.repeats for stage in self._early_stages)]
        assert isinstance(early, nn.Sequential)
        return early

    @property
    def _early_stages(self) -> tuple[Stage, ...]:
        strided = [index for index, stage in enumerate(self.stages) if stage.stride == 2]
        return self.stages[: strided[2]]

    def early_features(self, image_bgr: Tensor) -> Tensor:
        early: Tensor = self.early_layers(self.normalise(image_bgr))
        return early.permute(0, 2, 3, 1).flatten(1)

    def tokens_of_early_features(self, early: Tensor) -> Tensor:
        width, height = (side // _EARLY_STRIDE for side in self._size)
        early = early.unflatten(1, (height, width, -1)).permute(0, 3, 1, 2)
        return token_grid(self.layers[len(self.early_layers) :](early))

    def fold_channel_order(self) -> None:
        first = self.convolutions()[0]
        first.weight.data = first.weight.data.flip(1)
        self._takes_bgr = not self._takes_bgr

    def features(self, image_bgr: Tensor) -> ImageFeatures:
        return ImageFeatures(token_grid(self.layers(self.normalise(image_bgr))))

    def normalise(self, image_bgr: Tensor) -> Tensor:
        pixels = pixels_of(image_bgr)
        rgb = pixels if self._takes_bgr else pixels.flip(1)
        x = rgb * (1 / self.pixel_scale) - self.pixel_mean / self.pixel_scale
        return x.contiguous(memory_format=torch.channels_last)

    def convolutions(self) -> list[nn.Conv2d]:
        """Return the convolutions in the order of the forward pass."""
        return [module for module in self.modules() if isinstance(module, nn.Conv2d)]


class MobileNetV2(InvertedResiduals):
    """MobileNetV2 (Sandler et al., CVPR 2018), width 1.0: 52 convolutions, 2.2 M parameters."""

    kind: ClassVar[str] = "mobilenet_v2"
    description = "MobileNetV2 1.0"
    # Table 2 of the paper; the released weights expect RGB from -1 to 1.
    stages: ClassVar = (
        Stage(1, 16, 1, 1),
        Stage(6, 24, 2, 2),
        Stage(6, 32, 3, 2),
        Stage(6, 64, 4, 2),
        Stage(6, 96, 3, 1),
        Stage(6, 160, 3, 2),
        Stage(6, 320, 1, 1),
    )
    pixel_mean: ClassVar[float] = 127.5
    pixel_scale: ClassVar[float] = 127.5


class EfficientNetLite1(InvertedResiduals):
    """EfficientNet-Lite1 (Liu, 2020): EfficientNet (Tan and Le, ICML 2019) without squeeze-and-excitation, with ReLU6.

    64 convolutions, 4.1 M parameters.
    """

    kind: ClassVar[str] = "efficientnet_lite1"
    description = "EfficientNet-Lite1"
    # Table 1 of EfficientNet, 1.1 times as deep except the first and last stage; pixel normalisation of its training.
    stages: ClassVar = (
        Stage(1, 16, 1, 1),
        Stage(6, 24, 3, 2),
        Stage(6, 40, 3, 2, kernel=5),
        Stage(6, 80, 4, 2),
        Stage(6, 112, 4, 1, kernel=5),
        Stage(6, 192, 5, 2, kernel=5),
        Stage(6, 320, 1, 1),
    )
    pixel_mean: ClassVar[float] = 127.0
    pixel_scale: ClassVar[float] = 128.0


GRIDS: dict[str, type[InvertedResiduals]] = {grid.kind: grid for grid in (MobileNetV2, EfficientNetLite1)}
"""Grid backbones by name."""
