"""What a training phase asks of an objective, and what every objective is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.captioner import Captioner, Visual

if TYPE_CHECKING:
    from training.configs.schema import PhaseConfig


HOPELESS = 5.0
"""A loss so many times that of guessing all words alike, ln V, has exploded; before it learns a captioner has 1."""


@dataclass(frozen=True)
class TrainingCaptions:
    """The human captions of the training split."""

    words: Sequence[Sequence[list[str]]]
    """For each image its captions, as words."""
    vocabulary: Vocabulary
    max_words: int
    """Longest caption that beam search makes, in words, end token included."""
    max_caption_words: int
    """Longest caption that is trained on, in words, end token included."""


class Outcome(NamedTuple):
    """Of one batch."""

    loss: Tensor
    """() float32."""
    reward: float | None = None
    """Mean reward of the captions that were tried, where the objective has one."""


class Objective(Protocol):
    """Made once a phase, called once a batch, or once for each part of one."""

    largest_loss: float
    """A loss beyond it, on either side of 0, has exploded."""

    def __init__(self, captions: TrainingCaptions, phase: "PhaseConfig") -> None: ...

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray) -> Outcome:
        """
        Args:
            captioner: in training mode.
            visual: of B images.
            images: (B,) integers, which images of the training split they are.
        """
        ...

    def weight(self, images: np.ndarray) -> float:
        """What the loss of ``images`` is a mean over: how many words, or images.

        By it the losses of parts make up that of a batch.
        """
        ...
