"""Guidance of beam search by the objects in a frame: which words the search prefers, and how captions are ranked.

:class:`smart_caption_ros.grounding.ObjectsGuide` makes the word biases from detected objects.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.detections import ClassScores


class GuideMode(enum.Enum):
    """The values of `objects_guide`."""

    OFF = "off"
    RANK = "rank"
    """Captions that have ended are ranked by score + guidance."""
    BIAS = "bias"
    """Beam search chooses words by log probability + bias."""
    BOTH = "both"

    @property
    def biases_words(self) -> bool:
        """Whether the bias takes part in the choice of words."""
        return self in (GuideMode.BIAS, GuideMode.BOTH)

    @property
    def ranks_captions(self) -> bool:
        """Whether the search goes on until all beams have ended, which are then ranked."""
        return self in (GuideMode.RANK, GuideMode.BOTH)


@dataclass(frozen=True)
class Pieces:
    """Which pieces of a vocabulary belong to one word, so that the bias of a word is not that of its first piece."""

    continues: np.ndarray
    """(V,) bool, True for pieces that continue a word."""
    seconds: np.ndarray
    """(V, n) int64: of a piece that is no word by itself, but begins words in several pieces that name classes, the
    second pieces of these words; -1 elsewhere."""

    def counts(self, words: np.ndarray) -> np.ndarray:
        """Return where the bias of a piece counts in captions (..., T), (..., T) bool: at words of one piece, and at
        the first pieces of words that name classes.
        """
        following = np.concatenate([words[..., 1:], np.zeros_like(words[..., :1])], axis=-1)
        seconds = self.seconds[words]
        is_word = ~self.continues[following] & (seconds < 0).all(axis=-1)
        found: np.ndarray = is_word | (seconds == following[..., None]).any(axis=-1)
        return found


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
    def none(cls, frames: int, words: int) -> WordBiases:
        """Return biases that have no effect, for a vocabulary of that many words."""
        return cls(np.zeros((frames, words), np.float32), np.zeros((frames, words), np.int32))

    @classmethod
    def join(cls, biases: Sequence[WordBiases]) -> WordBiases:
        """Join the biases of several frames."""
        bias, groups = (np.concatenate([getattr(frame, name) for frame in biases]) for name in ("bias", "groups"))
        return cls(bias, groups, biases[0].pieces)

    def guidance(self, words: np.ndarray) -> np.ndarray:
        """Compute the guidance of captions: over the groups that a caption names, the sum of its first word's bias.

        Args:
            words: (B, k, T) int64 ids.

        Returns:
            (B, k) float32.
        """
        frames = np.arange(len(words))[:, None, None]
        groups, bias = self.groups[frames, words], self.bias[frames, words]
        if self.pieces is not None:
            counts = self.pieces.counts(words)
            groups, bias = np.where(counts, groups, 0), np.where(counts, bias, np.float32(0))
        earlier = np.tril(groups[..., :, None] == groups[..., None, :], -1).any(axis=-1)
        return np.where(earlier, np.float32(0), bias).sum(axis=-1, dtype=np.float32)


class Guide(Protocol):
    """Computes word biases from the scores of a detector's classes."""

    mode: GuideMode

    @property
    def description(self) -> str:
        """The mode and all numbers: equal for guides that give equal biases."""

    def word_biases(self, class_scores: ClassScores, vocabulary: Vocabulary) -> WordBiases:
        """Compute the biases of a frame's words, B = 1.

        Args:
            class_scores: of the frame.
            vocabulary: of the captioner.
        """
        ...


def rank_captions(
    beams: dict[str, np.ndarray], biases: WordBiases, length_penalty: float = 0.0
) -> dict[str, np.ndarray]:
    """Put the captions of each frame in the order of (score + guidance) / length ** length_penalty.

    Args:
        beams: outputs of a captioner graph, whose first two axes are frames and captions.
        biases: of the frames.
        length_penalty: of the bundle's search.
    """
    lengths = np.maximum((beams["words"] != Vocabulary.padding_id).sum(axis=2), 1)
    ranks = (beams["scores"] + biases.guidance(beams["words"])) / lengths**length_penalty
    order = np.argsort(-ranks, axis=1, kind="stable")
    frames = np.arange(len(order))[:, None]
    return {name: values[frames, order] for name, values in beams.items()}
