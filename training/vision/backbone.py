"""What every backbone is: a frame in, visual tokens out, and objects where it finds them."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

IMAGE_SIZE = 224
"""Width and height in pixels of the photographs that a backbone is trained on."""


class Found(NamedTuple):
    """Objects in a batch of frames, before overlapping ones are sorted out. A cells that answer for them."""

    class_scores: Tensor
    """(B, A, classes) float32, from 0 to 1: how sure a cell is of an object of each class."""
    boxes_xyxy: Tensor
    """(B, A, 4) float32, fractions of the frame; they may reach out of it."""


class Seen(NamedTuple):
    """One pass over a batch of frames."""

    tokens: Tensor
    """(B, N, token width), row by row."""
    found: Found | None = None
    """None of a backbone that finds no objects."""


class Backbone(nn.Module):
    """Sees frames of 224 x 224."""

    kind: ClassVar[str]
    """Its name in :data:`training.models.BACKBONES`."""
    description: ClassVar[str]
    """For the manifest."""
    class_names: Sequence[str] = ()
    """Of the objects that it finds."""
    token_width: int

    @property
    def learns(self) -> nn.Module:
        """What of it learns from captions."""
        return self

    @property
    def options(self) -> dict[str, Any]:
        """What it is built from again."""
        return {}

    def see(self, pixels: Tensor) -> Seen:
        """One pass.

        Args:
            pixels: (B, 3, H, W) float, BGR from 0 to 255.
        """
        raise NotImplementedError

    @property
    def fine_layers(self) -> Iterable[nn.Module]:
        """Those up to the map of stride 8."""
        raise NotImplementedError

    def fold_channel_order(self) -> None:
        """Let the weights take BGR as it comes, where they were made for RGB: a pass then reorders nothing."""
        raise NotImplementedError

    def look(self, image_bgr: Tensor) -> Seen:
        """One pass over (B, H, W, 3) uint8 frames, BGR."""
        return self.see(image_bgr.permute(0, 3, 1, 2).float())

    def forward(self, image_bgr: Tensor) -> Tensor:
        """The visual tokens of (B, H, W, 3) uint8 frames, BGR: (B, N, token width) float, row by row."""
        return self.look(image_bgr).tokens
