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

    def words_so_far(self, last: Tensor) -> Tensor:
        """Return the last pieces (B, k), padding in place of those that only begin the word of a class: what has been
        said if the next piece begins a word.
        """
        return torch.where((self.seconds[last] >= 0).any(dim=-1), Vocabulary.padding_id, last)

    def completed(self, before: Tensor, words: Tensor) -> Tensor:
        """Return ``before`` (B, k), the pieces before ``words``, where they were words of one piece or have begun the
        word of a class; padding elsewhere.
        """
        seconds = self.seconds[before]
        is_word = torch.logical_not(self.continues[words]) & (seconds < 0).all(dim=-1)
        return torch.where(is_word | (seconds == words[..., None]).any(dim=-1), before, Vocabulary.padding_id)

    def counted(self, bias: Tensor, after: Tensor, last: Tensor, penalty: float) -> Tensor:
        """Return the bias by which the next piece is chosen, (B, k, V).

        A piece that begins a word has that after the last word, unless it only begins the word of a class. A piece that
        continues the last word takes back what its first piece has gained, since the word becomes another one; the word
        of a class gains now.

        Args:
            bias: (B, k, V) float32, by which the last pieces were chosen.
            after: (B, k, V) float32, the bias if they have ended their words.
            last: (B, k) int64, the last pieces.
            penalty: of repetitions, which a piece that only begins the word of a class has all the same.
        """
        gained = self._of_begins(bias, penalty).gather(2, last[..., None])
        gained = torch.where(self.continues[last][..., None], 0.0, gained)
        ids = torch.arange(bias.shape[-1], device=bias.device)
        follows = (self.seconds[last][..., None, :] == ids[:, None]).any(dim=-1)
        continued = torch.where(follows, bias.gather(2, last[..., None]), -gained)
        return torch.where(self.continues, continued, self._of_begins(after, penalty))

    def _of_begins(self, bias: Tensor, penalty: float) -> Tensor:
        is_guided = (bias != -penalty) if penalty else torch.ones_like(bias, dtype=torch.bool)
        return torch.where((self.seconds >= 0).any(dim=1) & is_guided, 0.0, bias)
