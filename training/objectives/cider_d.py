"""CIDEr-D (Vedantam et al., CVPR 2015) on word ids, fast enough to be a reward.

The formula is that of pycocoevalcap's ``Cider``, which is CIDEr-D: counts are clipped, and a Gaussian of the
difference in length is applied. As there, a document is an image, and length is counted in bigrams. Document
frequencies, the references' n-grams and their norms are computed once; a score is then a handful of array
operations for all captions of a batch, without text and without a loop over images.

The end token. pycocoevalcap sees sentences, so there is none. A reward without it pays for n-grams alone, and a
captioner learns to break off in the middle of a phrase ("a man in a"), because the beginning of one costs nothing.
With ``end_token`` the end is a word of hypotheses and references like any other: the last n-grams of a whole
sentence match, those of a broken one do not, and a caption that was cut at the longest length has none.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary

LONGEST_NGRAM = 4
SIGMA = 6.0
"""Width of the length penalty, in bigrams."""
_UNSEEN = -1
_NOTHING = -2
"""What no n-gram of a hypothesis equals."""


class _Order(NamedTuple):
    """The n-grams of one length in the corpus."""

    keys: np.ndarray
    """(distinct,) int64, sorted. Of words: their ids. Of longer n-grams: number of the n-gram without its last
    word, times the number of distinct words, plus the number of the last word."""
    weights: np.ndarray
    """(distinct + 1,) float64, log(documents / documents with the n-gram); the last one is that of the unseen."""
    numbers: np.ndarray
    """(positions,) int32, the n-gram that begins at each position of the corpus, ``_NOTHING`` where none does."""


class CiderD:
    """CIDEr-D against the captions of a training corpus."""

    def __init__(
        self,
        corpus: Sequence[Sequence[Sequence[int]]],
        *,
        end_token: bool,
        end_id: int = Vocabulary.end_id,
        padding_id: int = Vocabulary.padding_id,
    ) -> None:
        """
        Args:
            corpus: for each image its captions as word ids, without begin, end and padding. Words that the
                captioner does not know have ids of their own (:meth:`from_words`).
            end_token: whether the end is a word: see the module's text.

        Raises:
            ValueError: an image has no captions.
        """
        counts = np.array([len(captions) for captions in corpus])
        if not counts.all():
            raise ValueError(f"image {int(np.argmin(counts))} of the corpus has no captions")
        self._end_token, self._end_id, self._padding_id = end_token, end_id, padding_id
        ending = [end_id] if end_token else []
        captions = [[*caption, *ending] for captions in corpus for caption in captions]
        self._counts = counts
        self._first = np.cumsum(counts) - counts
        self._lengths = np.array([len(caption) for caption in captions])
        self._starts = np.cumsum(self._lengths) - self._lengths
        words = np.fromiter(chain.from_iterable(captions), np.int64, int(self._lengths.sum()))
        caption_at = np.repeat(np.arange(len(captions)), self._lengths)
        image_at = np.repeat(np.arange(len(corpus)), counts)[caption_at]
        remaining = (self._starts + self._lengths)[caption_at] - np.arange(len(words))
        self._orders: list[_Order] = []
        norms = []
        for n in range(1, LONGEST_NGRAM + 1):
            at = np.flatnonzero(remaining >= n)
            keys = words[at] if n == 1 else self._join(self._orders[-1].numbers[at], at + n - 1)
            table, number = np.unique(keys, return_inverse=True)
            pairs = np.unique(image_at[at] * len(table) + number)
            frequency = np.bincount(pairs % max(1, len(table)), minlength=len(table))
            weights = np.log(len(corpus)) - np.log(np.append(frequency, 1))
            numbers = np.full(len(words), _NOTHING, np.int32)
            numbers[at] = number
            self._orders.append(_Order(table, weights, numbers))
            # Each place adds its n-gram's count times weight^2: over all places of an n-gram, (count * weight)^2.
            _, back, times = np.unique(caption_at[at] * len(table) + number, return_inverse=True, return_counts=True)
            squares = np.bincount(caption_at[at], times[back] * weights[number] ** 2, len(captions))
            norms.append(np.sqrt(squares))
        self._norms = np.stack(norms)

    @classmethod
    def from_words(
        cls, corpus: Iterable[Sequence[Sequence[str]]], vocabulary: Vocabulary, *, end_token: bool
    ) -> "CiderD":
        """From captions as words, whole: words outside the vocabulary stay distinct and count in the references."""
        ids = {word: index for index, word in enumerate(vocabulary.words)}
        encoded = [[[ids.setdefault(word, len(ids)) for word in words] for words in captions] for captions in corpus]
        return cls(encoded, end_token=end_token)

    def _join(self, numbers: np.ndarray, last_at: np.ndarray) -> np.ndarray:
        first = self._orders[0]
        return numbers.astype(np.int64) * len(first.keys) + first.numbers[last_at]

    def score(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """CIDEr-D of k captions for each of B images.

        Args:
            images: (B,) integers, which images of the corpus.
            words: (B, k, T) integers, ids up to and with the end token, then padding, as beam search gives them.
                What has no end token was cut.

        Returns:
            (B, k) float64 in [0, 10].
        """
        batch, beams, width = words.shape
        stopped = (words == self._end_id) | (words == self._padding_id)
        cut = ~stopped.any(axis=-1)
        lengths = np.where(cut, width, stopped.argmax(axis=-1))
        if self._end_token:
            at_stop = np.take_along_axis(words, np.minimum(lengths, width - 1)[..., None], axis=-1)[..., 0]
            lengths = lengths + (~cut & (at_stop == self._end_id))
        references, reference_lengths, norms, real = self._references(images)
        # In bigrams, as pycocoevalcap counts.
        difference = np.maximum(lengths - 1, 0)[:, None] - np.maximum(reference_lengths - 1, 0)[..., None]
        penalty = np.exp(-(difference**2) / (2 * SIGMA**2))
        similarity = np.zeros((batch, len(real[0]), beams))
        flat, flat_lengths = words.reshape(-1, width), lengths.reshape(-1, 1)
        same_word = flat[:, :, None] == flat[:, None, :]
        same, numbers = same_word, np.empty(0)
        first = self._find(0, flat)
        for n in range(1, min(LONGEST_NGRAM, width) + 1):
            if n == 1:
                numbers = first
            else:
                same = same[:, :-1, :-1] & same_word[:, n - 1 :, n - 1 :]
                before, last = numbers[:, :-1], first[:, n - 1 :]
                found = self._find(n - 1, before * len(self._orders[0].keys) + last)
                numbers = np.where((before == _UNSEEN) | (last == _UNSEEN), _UNSEEN, found)
            whole = np.arange(width - n + 1) <= flat_lengths - n
            count = same.view(np.uint8).sum(axis=1, dtype=np.uint16)
            squared = np.where(whole, self._orders[n - 1].weights[numbers] ** 2, 0.0)
            norm = np.sqrt((count * squared).sum(axis=-1)).reshape(batch, beams)
            # (L, B, G, k * T): the long axis last and the summed one first keep these comparisons fast.
            equal = references[n - 1][..., None] == numbers.astype(np.int32).reshape(batch, 1, -1)
            matches = equal.view(np.uint8).sum(axis=0, dtype=np.uint16)
            # An n-gram that occurs c times is met c times here, so each time counts 1 / c.
            share = (squared / count).reshape(batch, 1, -1)
            products = np.minimum(matches, count.reshape(batch, 1, -1)) * matches * share
            products = products.reshape(batch, -1, beams, width - n + 1).sum(axis=-1)
            scale = norms[n - 1][..., None] * norm[:, None]
            similarity += np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
        similarity *= penalty * real[..., None]
        return 10.0 * similarity.sum(axis=1) / LONGEST_NGRAM / self._counts[images][:, None]

    def _references(self, images: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """Of each image's captions: n-gram numbers (orders x (L, B, G)), lengths (B, G), norms (orders, B, G), real."""
        counts = self._counts[images]
        place = np.arange(counts.max())
        real = place < counts[:, None]
        captions = self._first[images][:, None] + np.where(real, place, 0)
        lengths = self._lengths[captions]
        steps = np.arange(lengths.max())[:, None, None]
        inside = steps < lengths
        at = np.where(inside, self._starts[captions] + steps, 0)
        numbers = [np.where(inside, order.numbers[at], _NOTHING) for order in self._orders]
        return numbers, lengths, self._norms[:, captions], real

    def _find(self, order: int, keys: np.ndarray) -> np.ndarray:
        """Numbers of n-grams by key, ``_UNSEEN`` for those that the corpus does not have."""
        table = self._orders[order].keys
        if not len(table):
            return np.full(keys.shape, _UNSEEN)
        place = np.minimum(np.searchsorted(table, keys), len(table) - 1)
        return np.where(table[place] == keys, place, _UNSEEN)
