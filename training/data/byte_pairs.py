"""Pieces of words by byte-pair encoding, learnt from the training captions with Hugging Face's ``tokenizers``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smart_caption_ros.captioning.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from training.data.captions import Captions, count_words
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

    def split(self, captions: Captions) -> Captions:
        """Replace the words of captions by their pieces."""
        words = list(count_words(captions))
        pieces = dict(zip(words, self.pieces(words), strict=True))
        return [[[piece for word in caption for piece in pieces[word]] for caption in group] for group in captions]


def _tokenizers() -> Any:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise DataError(f"byte pairs need tokenizers ({error}); pip install '.[training]'") from None
    return tokenizers
