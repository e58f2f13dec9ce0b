"""Words in several pieces: what the bias of a word is while the search says its pieces.

"book" does not raise "book##shelf": what the piece has gained is taken back when the word goes on. A class whose word
is in several pieces ("skate##board") is raised at the second one.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.grounding.class_words import class_pieces


class PieceTables(NamedTuple):
    """:class:`smart_caption_ros.captioning.guidance.Pieces` as tensors."""

    continues: Tensor
    """(V,) bool."""
    seconds: Tensor
    """(V, n) int64."""

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "PieceTables | None":
        """Make the tables of a vocabulary; None for one of whole words."""
        pieces = class_pieces(vocabulary)
        return None if pieces is None else cls(torch.from_numpy(pieces.continues), torch.from_numpy(pieces.seconds))

    def counted(self, bias: Tensor, penalty: float) -> Tensor:
        """Return the bias (B, k, V) by which the next piece is chosen: pieces that only begin the word of a class have
        none, except the penalty of repetitions.
        """
        is_guided = (bias != -penalty) if penalty else torch.ones_like(bias, dtype=torch.bool)
        return torch.where((self.seconds >= 0).any(dim=1) & is_guided, 0.0, bias)

    def completed(self, before: Tensor, words: Tensor) -> Tensor:
        """Return ``before`` (B, k), the pieces before ``words``, where they were words of one piece or have begun the
        word of a class; padding elsewhere.
        """
        seconds = self.seconds[before]
        is_word = torch.logical_not(self.continues[words]) & (seconds < 0).all(dim=-1)
        return torch.where(is_word | (seconds == words[..., None]).any(dim=-1), before, Vocabulary.padding_id)

    def within_word(self, bias: Tensor, counted: Tensor, words: Tensor) -> Tensor:
        """Set the bias of the pieces that continue ``words`` (B, k): what the first piece has gained is taken back,
        since the word becomes another one; the word of a class gains now.

        Args:
            bias: (B, k, V) float32, of the next piece.
            counted: (B, k, V) float32, by which ``words`` were chosen.
            words: (B, k) int64.
        """
        gained = counted.gather(2, words[..., None])
        gained = torch.where(self.continues[words][..., None], 0.0, gained)
        ids = torch.arange(bias.shape[-1], device=bias.device)
        follows = (self.seconds[words][..., None, :] == ids[:, None]).any(dim=-1)
        return torch.where(self.continues, torch.where(follows, bias.gather(2, words[..., None]), -gained), bias)
