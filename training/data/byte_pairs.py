"""Pieces of words by byte-pair encoding, learnt from the training captions with Hugging Face's ``tokenizers``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from smart_caption_ros.captioning.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from training.data.captions import TokenizedCaptions
from training.errors import DataError

CONTINUATION = "##"
"""Prefix of a piece that continues a word."""


@dataclass(frozen=True)
class BytePairs:
    """Splits words into the pieces of a vocabulary."""

    vocabulary: Vocabulary
    """The pieces; its ``continuation`` is :data:`CONTINUATION`."""
    merges: Sequence[Sequence[str]] | None
    """Pairs of pieces that are joined, in the order in which they are tried; JSON values. None for the vocabulary of a
    published captioner: the longest piece that begins a word, then the longest that continues it, as BERT's WordPiece
    does."""

    @classmethod
    def learn(cls, counts: Mapping[str, int], size: int) -> "BytePairs":
        """Learn pieces: the characters of the words, then the most frequent pairs of pieces; ties by their order.

        Args:
            counts: how often each word occurs in the training captions.
            size: number of pieces with the special words; fewer if the words have no more pairs.

        Raises:
            DataError: tokenizers is not installed, or the special words and the characters alone are more than
                ``size``.
        """
        tokenizers = _tokenizers()
        first = {word[0] for word in counts}
        # The library numbers the characters inside words in the order of a hash map, and breaks ties by number. As
        # special words they get the numbers of this list, so that all processes learn the same pieces.
        inner = sorted({CONTINUATION + letter for word in counts for letter in word[1:]})
        if (least := len(SPECIAL) + len(first) + len(inner)) > size:
            raise DataError(
                f"data: vocabulary_size is {size}, but the special words and the characters of the captions alone "
                f"are {least} pieces"
            )
        learner = tokenizers.Tokenizer(tokenizers.models.BPE(continuing_subword_prefix=CONTINUATION))
        learner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[*SPECIAL, *inner],
            continuing_subword_prefix=CONTINUATION,
            show_progress=False,
        )
        learner.train_from_iterator((f"{word} " * count for word, count in sorted(counts.items())), trainer)
        model = json.loads(learner.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].get)
        return cls(Vocabulary(tuple(pieces), CONTINUATION), [list(pair) for pair in model["merges"]])

    def pieces(self, words: Sequence[str]) -> list[list[str]]:
        """Split words; a character without a piece becomes the unknown word."""
        tokenizers = _tokenizers()
        pieces = self.vocabulary.words
        ids = {piece: index for index, piece in enumerate(pieces)}
        for index in filter(self.vocabulary.is_attached, range(len(pieces))):  # captions have 's without the prefix
            ids.setdefault(pieces[index].removeprefix(self.vocabulary.attachment), index)
        options = {"vocab": ids, "unk_token": UNKNOWN, "continuing_subword_prefix": self.vocabulary.continuation}
        if self.merges is None:
            model = tokenizers.models.WordPiece(**options)
        else:
            model = tokenizers.models.BPE(merges=[(left, right) for left, right in self.merges], **options)
        return [[pieces[piece.id] for piece in model.tokenize(word)] for word in words]

    def split(self, captions: TokenizedCaptions) -> TokenizedCaptions:
        """Replace the words of captions by their pieces."""
        pieces = self.pieces(captions.words)
        names = list(dict.fromkeys(chain.from_iterable(pieces)))
        places = {name: place for place, name in enumerate(names)}
        of_words = np.array([places[piece] for piece in chain.from_iterable(pieces)], np.int64)
        lengths = np.array([len(word_pieces) for word_pieces in pieces], np.int64)
        starts = np.cumsum(lengths) - lengths
        ids = np.asarray(captions.ids)
        counts = lengths[ids]
        ends = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        return TokenizedCaptions(
            names,
            of_words[np.repeat(starts[ids], counts) + within],
            ends[captions.caption_starts],
            captions.image_starts,
            captions.images,
        )


def _tokenizers() -> Any:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise DataError(f"byte pairs need tokenizers ({error}); pip install '.[training]'") from None
    return tokenizers
