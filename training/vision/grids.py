"""Grid backbones of inverted residual blocks: MobileNetV2 and EfficientNet-Lite1."""

from typing import ClassVar

from training.vision.inverted_residuals import InvertedResiduals, Stage


class MobileNetV2(InvertedResiduals):
    """MobileNetV2 (Sandler et al., CVPR 2018), width 1.0: 52 convolutions, 2.2 M parameters."""

    kind: ClassVar[str] = "mobilenet_v2"
    description: ClassVar[str] = "MobileNetV2 1.0"
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
    description: ClassVar[str] = "EfficientNet-Lite1"
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
