"""The interface of a backbone: frames in, visual tokens and, where it has a detector, detections out."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

IMAGE_SIZE = 224
"""Width and height in pixels of the frames that a backbone takes in training."""
STRIDE = 32
"""Pixels of a frame that a token stands for, on each side."""


class RawDetections(NamedTuple):
    """Detections in a batch of frames before non-maximum suppression; A is the number of candidates a frame."""

    class_scores: Tensor
    """(B, A, classes) float32, from 0 to 1."""
    boxes_xyxy: Tensor
    """(B, A, 4) float32, fractions of the frame; a box may extend beyond the frame."""


class ImageFeatures(NamedTuple):
    """Output of one pass over a batch of frames."""

    tokens: Tensor
    """(B, N, token width) float, the cells of the grid row by row."""
    detections: RawDetections | None = None
    """None where the backbone has no detector."""


class Backbone(nn.Module):
    """Base class of the networks that make visual tokens of frames."""

    kind: ClassVar[str]
    """Name in :data:`training.vision.side_by_side.BACKBONES`."""
    description: ClassVar[str]
    """Name for the manifest."""
    image_size: int = IMAGE_SIZE
    """Width and height in pixels of the frames."""
    class_names: Sequence[str] = ()
    """Classes of the detector in the order of its scores; empty without a detector."""
    token_width: int

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the tokens of a frame."""
        return self.image_size // STRIDE, self.image_size // STRIDE

    @property
    def early_width(self) -> int:
        """Number of early features of a frame."""
        raise NotImplementedError

    def set_image_size(self, size: int) -> None:
        """Take frames of another size.

        Raises:
            ValueError: it is no positive multiple of :data:`STRIDE`.
        """
        if size < STRIDE or size % STRIDE:
            raise ValueError(f"the size of frames must be a positive multiple of {STRIDE}, not {size}")
        self.image_size = size

    @property
    def trainable(self) -> nn.Module:
        """The part that is trained on captions."""
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments that construct the same network again."""
        return {}

    @property
    def early_layers(self) -> Iterable[nn.Module]:
        """The layers up to the feature map of stride 8."""
        raise NotImplementedError

    def early_features(self, image_bgr: Tensor) -> Tensor:
        """Compute what the tokens depend on if neither the early layers nor a detector learn.

        Args:
            image_bgr: (B, H, W, 3) uint8 frames.

        Returns:
            (B, early_width) float: output of the early layers, and the part of the tokens that a detector makes.
        """
        raise NotImplementedError

    def tokens_of_early_features(self, early: Tensor) -> Tensor:
        """Compute the visual tokens, (B, N, token width) float, of :meth:`early_features`."""
        raise NotImplementedError

    def features_of_pixels(self, pixels: Tensor) -> ImageFeatures:
        """Compute tokens and detections.

        Args:
            pixels: (B, 3, H, W) float, BGR from 0 to 255.
        """
        raise NotImplementedError

    def features(self, image_bgr: Tensor) -> ImageFeatures:
        """Compute tokens and detections of (B, H, W, 3) uint8 frames, BGR."""
        return self.features_of_pixels(pixels_of(image_bgr))

    def fold_channel_order(self) -> None:
        """Reorder the first weights from RGB to BGR, so that an exported graph need not reorder the channels."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Compute the visual tokens, (B, N, token width) float.

        Args:
            x: (B, H, W, 3) uint8 frames, BGR, or their :meth:`early_features`.
        """
        return self.features(x).tokens if x.dtype == torch.uint8 else self.tokens_of_early_features(x)


def pixels_of(image_bgr: Tensor) -> Tensor:
    """Convert (B, H, W, 3) uint8 frames to (B, 3, H, W) float from 0 to 255."""
    return image_bgr.permute(0, 3, 1, 2).float()
