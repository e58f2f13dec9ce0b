"""Guidance of beam search by the objects in a frame: which words the search prefers.

:class:`smart_caption_ros.grounding.ObjectsGuide` makes the word biases from detected objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.detections import ClassScores


@dataclass(frozen=True)
class Pieces:
    """Which pieces of a vocabulary belong to one word, so that the bias of a word is not that of its first piece."""

    continues: np.ndarray
    """(V,) bool, True for pieces that continue a word."""
    seconds: np.ndarray
    """(V, n) int64. For the first piece of words that name classes, the pieces that may come second in them, padded
    with -1: "board" for "skate", of skateboard. Only -1 for a piece that is a word of its own, as "book"."""


@dataclass(frozen=True)
class WordBiases:
    """Biases of the words for B frames."""

    bias: np.ndarray
    """(B, V) float32, natural logarithm."""
    groups: np.ndarray
    """(B, V) int32, group of each word, from 1; 0 for words without bias. A group's bias counts once in a caption."""
    pieces: Pieces | None = None
    """Which of the words are pieces; None where all are whole words."""

    @classmethod
    def none(cls, frames: int, words: int) -> "WordBiases":
        """Return biases that have no effect, for a vocabulary of that many words."""
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
        """All numbers: equal for guides that give equal biases."""

    def word_biases(self, class_scores: ClassScores, vocabulary: Vocabulary) -> WordBiases:
        """Compute the biases of a frame's words, B = 1."""
        ...
