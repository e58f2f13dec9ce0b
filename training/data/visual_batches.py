"""Batches of visual input, and the interface of the sources of such batches during training.

A batch is made in two steps, so that the first can run ahead of the training step: reading on the host (photographs, or
tokens that were computed before), then making tokens on the device (by the backbone, where photographs were read).
"""

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from training.configs.schema import PhaseConfig
from training.models.captioner import Visual
from training.vision.backbone import Backbone

HostBatch: TypeAlias = Any
"""B images as they are read on the host: any tree of tensors; :class:`VisualBatch` for stored features."""


class VisualBatch(NamedTuple):
    """Stored features of B images."""

    values: Tensor
    """(B, N, width) tokens, float32, or float16 of a store."""
    mask: Tensor | None = None
    """(B, N) bool, True where a token is real; None when all are."""
    boxes_xyxy: Tensor | None = None
    """(B, N, 4) float32, each token's box as fractions of the image's width and height; None where unknown."""


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

    def begin_phase(self, phase: PhaseConfig, precision: str) -> None:
        """Prepare the batches of a phase; the backbone has the weights that the phase starts from.

        Args:
            phase: the phase.
            precision: in which the run computes: features that are kept are those of one precision.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def begin_epoch(self, epoch: int) -> None:
        """Choose the view of every image in an epoch of the phase, counted from 0."""
        ...

    def training_batch(self, images: np.ndarray) -> HostBatch:
        """Read images of the training split; may be called in other threads.

        Args:
            images: (B,) integers, indices into the split.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def dev_batch(self, images: np.ndarray) -> HostBatch:
        """Read images of the dev split without augmentation; arguments and errors as :meth:`training_batch`."""
        ...

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        """Compute the mean token of training images without augmentation, (B, token_width); outside of phases.

        Arguments and errors are those of :meth:`training_batch`.
        """
        ...

    def pooled_key(self) -> list[Any]:
        """Return JSON values that identify images and weights from which :meth:`pooled` is computed."""
        ...

    def visual(self, batch: HostBatch) -> Visual:
        """Make the captioner's input; the tokens have a gradient in a phase that trains the backbone."""
        ...
