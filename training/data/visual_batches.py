"""Batches of visual input, and the interface of the sources of such batches during training.

A batch is made in two steps, so that the first can run ahead of the training step: reading on the host (photographs, or
tokens that were computed before), then making tokens on the device (by the backbone, where photographs were read).
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from training.configs.schema import PhaseConfig
from training.models.captioner import Visual
from training.vision.backbone import Backbone


class VisualBatch(NamedTuple):
    """B images as they are read on the host."""

    values: Tensor
    """Tokens (B, N, width) float32, or float16 of a store, or photographs (B, H, W, 3) uint8 BGR of which a backbone
    makes tokens."""
    mask: Tensor | None = None
    """(B, N) bool, True where a token is real; None when all are."""
    boxes_xyxy: Tensor | None = None
    """(B, N, 4) float32, each token's box as fractions of the image's width and height; None where unknown."""
    image_size: Tensor | None = None
    """(B, 2) float32, width and height of the images in pixels; None where unknown."""


class VisualInputs(Protocol):
    """The visual side of the training and dev splits."""

    @property
    def token_width(self) -> int:
        """Width of a visual token."""
        ...

    @property
    def backbone(self) -> Backbone | None:
        """The network that makes the tokens and is part of the model; None for stored features."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """Origin of the tokens, JSON values for the record of the model."""
        ...

    def begin_phase(self, phase: PhaseConfig) -> None:
        """Prepare the batches of a phase; the backbone has the weights that the phase starts from.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def begin_epoch(self, random: np.random.Generator) -> None:
        """Draw the random choices of an epoch."""
        ...

    def training_batch(self, images: np.ndarray, random: np.random.Generator) -> VisualBatch:
        """Read images of the training split.

        Args:
            images: (B,) integers, indices into the split.
            random: generator of this batch. The view of an image does not depend on the other images of the batch.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def dev_batch(self, images: np.ndarray) -> VisualBatch:
        """Read images of the dev split without augmentation.

        Args:
            images: (B,) integers, indices into the split.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def visual(self, batch: VisualBatch) -> Visual:
        """Make the captioner's input; the tokens have a gradient in a phase that trains the backbone."""
        ...
