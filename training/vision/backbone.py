"""The interface of a backbone: frames in, visual tokens and, where it has a detector, detections out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from smart_caption_ros.imaging.preprocessing import Preprocessing

IMAGE_SIZE = 224
"""Width and height in pixels of the frames of a backbone that takes any size."""
SQUASHED = Preprocessing(IMAGE_SIZE, IMAGE_SIZE)
"""Preprocessing for the networks of this project."""
STRIDE = 32
"""Pixels of a frame that a token of a convolutional backbone of ours stands for, on each side."""


@dataclass(frozen=True)
class BackboneSpec:
    """Input frames and output tokens of a backbone."""

    preprocessing: Preprocessing
    """Size, interpolation and crop of the frames."""
    mean: tuple[float, float, float]
    """Means of red, green and blue from 0 to 1, which the network itself subtracts."""
    std: tuple[float, float, float]
    """Standard deviations of red, green and blue, by which the differences are divided."""
    rows: int
    columns: int
    """Columns of the grid of tokens, which has :attr:`rows` rows."""
    token_width: int
    before: int = 0
    """Tokens before those of the grid, such as a class token, which stand for no cell."""

    @property
    def tokens(self) -> int:
        """Number of tokens of a frame."""
        return self.before + self.rows * self.columns


class RawDetections(NamedTuple):
    """Detections in a batch of frames before non-maximum suppression; A is the number of candidates a frame."""

    class_scores: Tensor
    """(B, A, classes) float32, from 0 to 1."""
    boxes_xyxy: Tensor
    """(B, A, 4) float32, fractions of the frame; a box may extend beyond the frame."""


class ImageFeatures(NamedTuple):
    """Output of one pass over a batch of frames."""

    tokens: Tensor
    """(B, N, token width) float: those before the grid, then the cells of the grid row by row."""
    detections: RawDetections | None = None
    """None where the backbone has no detector."""


class Backbone(nn.Module):
    """Base class of the networks that make visual tokens of frames."""

    kind: ClassVar[str]
    """Name in :data:`training.vision.side_by_side.BACKBONES`."""
    description: str
    """Name for the manifest."""
    class_names: Sequence[str] = ()
    """Classes of the detector in the order of its scores; empty without a detector."""

    @property
    def spec(self) -> BackboneSpec:
        """Frames and tokens."""
        raise NotImplementedError

    def set_image_size(self, width: int, height: int) -> None:
        """Take frames of another size, pixels.

        Raises:
            ValueError: the backbone takes none of that size.
        """
        raise NotImplementedError

    def features(self, image_bgr: Tensor) -> ImageFeatures:
        """Compute tokens and detections of (B, H, W, 3) frames, BGR from 0 to 255, uint8 or float."""
        raise NotImplementedError

    def tokens(self, image_bgr: Tensor) -> Tensor:
        """Compute the visual tokens, (B, N, token width) float, of frames as of :meth:`features`."""
        return self.features(image_bgr).tokens

    def forward(self, image_bgr: Tensor) -> Tensor:
        """Compute what :meth:`tokens` computes."""
        return self.tokens(image_bgr)

    @property
    def trainable(self) -> nn.Module:
        """The part that is trained on captions."""
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments, JSON values, that construct the same network again."""
        return {}

    def fold_channel_order(self) -> None:
        """Take BGR without reordering the channels, for an exported graph; a network that cannot stays as it is."""

    def normalise(self, image_bgr: Tensor) -> Tensor:
        """Convert (B, H, W, 3) frames, BGR from 0 to 255, to (B, 3, H, W) float, RGB less the mean and scaled."""
        spec = self.spec
        scale = torch.tensor([1 / (255 * std) for std in spec.std], device=image_bgr.device)
        shift = torch.tensor([-m / s for m, s in zip(spec.mean, spec.std, strict=True)], device=image_bgr.device)
        rgb = pixels_of(image_bgr).flip(1)
        return rgb * scale[:, None, None] + shift[:, None, None]


class CachesEarlyLayers(Backbone):
    """A backbone whose early layers can be computed apart, once a photograph, while the others learn."""

    @property
    def early_width(self) -> int:
        """Number of early features of a frame."""
        raise NotImplementedError

    @property
    def early_layers(self) -> Iterable[nn.Module]:
        """The layers up to the feature map of stride 8."""
        raise NotImplementedError

    def early_features(self, image_bgr: Tensor) -> Tensor:
        """Compute what the tokens depend on if neither the early layers nor a detector learn.
        ``image_bgr``: (B, H, W, 3) uint8 frames.

        Returns:
            (B, early_width) float: output of the early layers, and the part of the tokens that a detector makes.
        """
        raise NotImplementedError

    def tokens_of_early_features(self, early: Tensor) -> Tensor:
        """Compute the visual tokens, (B, N, token width) float, of :meth:`early_features`."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Compute the visual tokens of (B, H, W, 3) uint8 frames, BGR, or of their :meth:`early_features`."""
        return self.tokens(x) if x.dtype == torch.uint8 else self.tokens_of_early_features(x)


def pixels_of(image_bgr: Tensor) -> Tensor:
    """Convert (B, H, W, 3) frames to (B, 3, H, W) float, from 0 to 255."""
    # Cast first: TensorRT supports nothing else on a uint8 input.
    return image_bgr.float().permute(0, 3, 1, 2)


def token_grid(grid: Tensor) -> Tensor:
    """Convert a grid (B, C, rows, columns) to tokens (B, rows * columns, C)."""
    return grid.flatten(2).transpose(1, 2)
