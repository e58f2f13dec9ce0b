"""The interface of training objectives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.captions import Captions
from training.models.captioner import Captioner, HookContext, Visual

MAX_LOSS_FACTOR = 5.0
"""A loss of more than this many times ln V, the loss of a uniform prediction, counts as exploded."""


@dataclass(frozen=True)
class TrainingCaptions:
    """The human captions of the training split."""

    words: Captions
    vocabulary: Vocabulary
    max_words: int
    """Longest caption that beam search makes, in words, end token included."""
    max_caption_words: int
    """Longest caption that is trained on, in words, end token included."""
    weights: NDArray[np.float32] | None = None
    """(images,) weight of each image's captions in the cross-entropy and in the reward; None: 1 each."""
    similar: NDArray[np.int64] | None = None
    """(images, K) indices of the most similar images of each image, the most similar first, -1 where there are fewer;
    None where no phase needs them."""
    search: Search = field(default_factory=Search)
    """Settings of the captioner's search."""
    things: Sequence[Sequence[str] | None] = ()
    """(images,) exhaustive list of the things of each image, None where there is none; empty where no image has one."""


class BatchLoss(NamedTuple):
    """Loss of a batch, or of a part of one."""

    loss: Tensor
    """() float32."""
    reward: float | None = None
    """Mean reward of the captions that were sampled; None for objectives without one."""


class Objective:
    """Base class of the losses of a phase: made once a phase, called once for each batch or part of a batch."""

    max_loss: float
    """A loss whose absolute value is greater counts as exploded."""

    def on_step(self, context: HookContext) -> None:
        """Prepare for a training step; called before each one."""

    def targets(self, images: np.ndarray) -> Any:
        """Prepare what the loss needs of the captions of B images; called in the threads that read ahead.
        ``images``: (B,) integers, their indices in the training split.

        Returns:
            Any tree of tensors on the CPU.
        """
        return None

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray, targets: Any) -> BatchLoss:
        """Compute the loss of B images.

        Args:
            captioner: in training mode.
            images: (B,) integers, their indices in the training split.
            targets: from :meth:`targets`, on the captioner's device.
        """
        raise NotImplementedError

    def weights(self, images: np.ndarray) -> np.ndarray:
        """Count the terms of each image in the mean that the loss is: its words, or 1; (B,).

        The loss of a batch is the mean of the losses of its parts, weighted by the sums of these counts.
        """
        return np.ones(len(images))

    def costs(self, images: np.ndarray) -> np.ndarray:
        """Estimate the work for each image, in any unit; (B,). By default all are alike.

        Images with similar costs share a batch, and a batch is divided evenly among processes.
        """
        return np.ones(len(images))


def log_probabilities(logits: Tensor) -> Tensor:
    """Compute the log probabilities of all words after each prefix.
    ``logits``: (B, Q, V).

    Returns:
        (B * Q, V), at least float32.
    """
    return logits.flatten(0, 1).log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
