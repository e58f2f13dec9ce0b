"""EfficientNet-Lite1 (Liu, 2020): EfficientNet (Tan and Le, ICML 2019) without squeeze-and-excitation, with ReLU6."""

from typing import ClassVar

from training.vision.inverted_residuals import InvertedResiduals, Stage


class EfficientNetLite1(InvertedResiduals):
    """64 convolutions, 4.1 M parameters."""

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
