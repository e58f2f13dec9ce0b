"""MobileNetV2 (Sandler et al., CVPR 2018), width 1.0."""

from typing import ClassVar

from training.vision.inverted_residuals import InvertedResiduals, Stage


class MobileNetV2(InvertedResiduals):
    """52 convolutions, 2.2 M parameters."""

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
