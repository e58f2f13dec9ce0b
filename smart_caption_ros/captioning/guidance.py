"""Word biases, by which the objects in a frame guide beam search.

:class:`smart_caption_ros.grounding.ObjectsGuide` computes them from detected objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.detections import ClassScores


@dataclass(frozen=True)
class Pieces:
    """Which pieces of a vocabulary make words that name classes, so that other words that begin alike get no bias."""

    continues: np.ndarray
    """(V,) bool, True for pieces that continue a word."""
    seconds: np.ndarray
    """(V, n) int64, for each piece that begins words which name classes: the ids of their second pieces, padded with
    -1, as "board" for "skate" (skateboard). Only -1 for other pieces, and for pieces that name a class alone."""


@dataclass(frozen=True)
class WordBiases:
    """Biases of the words for B frames."""

    bias: np.ndarray
    """(B, V) float32, natural logarithm."""
    groups: np.ndarray
    """(B, V) int32, group of each word, from 1; 0 for words without bias. A group's bias counts once in a caption."""
    pieces: Pieces | None = None
    """None for a vocabulary of whole words."""

    @classmethod
    def none(cls, frames: int, words: int) -> "WordBiases":
        """Return biases that have no effect; ``words`` is the size V of the vocabulary."""
        return cls(np.zeros((frames, words), np.float32), np.zeros((frames, words), np.int32))

    @classmethod
    def join(cls, biases: "Sequence[WordBiases]") -> "WordBiases":
        """Join the biases of several frames."""
        bias, groups = (np.concatenate([getattr(frame, name) for frame in biases]) for name in ("bias", "groups"))
        return cls(bias, groups, biases[0].pieces)


class Guide(Protocol):
    """Computes word biases from the scores of a detector's classes."""

    @property
    def description(self) -> str:
        """Text with all settings; equal for guides that compute equal biases."""

    def word_biases(self, class_scores: ClassScores, vocabulary: Vocabulary) -> WordBiases:
        """Compute the biases of a frame's words, B = 1."""
        ...
