"""CIDEr-D (Vedantam et al., CVPR 2015) on word ids: the metric of evaluations and the reward of training.

The formula is that of pycocoevalcap's ``Cider``, which is CIDEr-D: n-gram counts are clipped, and a Gaussian penalises
differences in length. As there, a document is an image, and length is counted in bigrams. Document frequencies, the
references' n-grams and their norms are computed once; a score is then a handful of array operations for all captions
of a batch, without text and without a loop over images.

The toolkit's "CIDEr" takes document frequencies from the references that are scored, so its value depends on which
images these are. Self-critical training takes them from the training captions.

The end token: pycocoevalcap scores sentences, which have none, and a captioner that is rewarded so learns to end in the
middle of a phrase ("a man in a"), because the beginning of a phrase costs nothing. With ``end_token`` the end is a word
of hypotheses and references like any other; a caption that was cut at the maximum length has none.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.evaluation.metrics.metric import Captions, Metric, References, mean_metric, ratio

MAX_N = 4
SIGMA = 6.0
"""Standard deviation of the length penalty, in bigrams."""
MAX_SCORE = 10.0
"""Highest possible CIDEr-D."""
_UNSEEN = -1
"""Number of an n-gram that the tables lack."""
_NO_NGRAM = -2
"""Number at positions of a reference where no n-gram begins; equal to no number of a hypothesis."""
_BATCH = 100
"""Images scored at a time: bounds the memory of large evaluations."""

IdCaptions = Iterable[Iterable[Sequence[int]]]
"""For each image its captions as word ids, without begin, end and padding tokens."""


class _FlatCaptions(NamedTuple):
    """Captions of images, one after the other."""

    counts: np.ndarray
    """(images,) int64, number of captions."""
    lengths: np.ndarray
    """(captions,) int64, in words."""
    words: np.ndarray
    """(words of all captions,) int64."""


def _flatten(captions: IdCaptions, ending: Sequence[int]) -> _FlatCaptions:
    """Append ``ending`` to each caption and join all of them."""
    counts, lengths, words = array("q"), array("q"), array("q")
    for group in captions:
        before = len(lengths)
        for caption in group:
            words.extend(caption)
            words.extend(ending)
            lengths.append(len(caption) + len(ending))
        counts.append(len(lengths) - before)
    return _FlatCaptions(*(np.asarray(values) for values in (counts, lengths, words)))


def _differs(values: np.ndarray) -> np.ndarray:
    """Return for each value whether it differs from the one before it; (n,) bool, True for the first."""
    different = np.ones(len(values), bool)
    different[1:] = values[1:] != values[:-1]
    return different


class _NgramTable(NamedTuple):
    """The n-grams of one length in references and corpus."""

    keys: np.ndarray
    """(distinct,) int64, sorted. For n = 1 the word ids; for n > 1 the number of the n-gram without its last word,
    times the number of distinct words, plus the number of the last word."""
    frequencies: np.ndarray
    """(distinct + 1,) int32, documents with the n-gram; the last is that of unseen n-grams, 0."""
    numbers: np.ndarray
    """(positions,) int32, the n-gram that begins at each position of the captions, else ``_NO_NGRAM``."""


class CiderD:
    """CIDEr-D of captions as word ids."""

    def __init__(
        self,
        references: IdCaptions,
        corpus: IdCaptions | None = None,
        *,
        end_token: bool,
        captions_are_documents: bool = False,
    ) -> None:
        """Index the n-grams.

        Args:
            references: the captions to compare with. Words that the captioner does not know have ids of their own
                (:meth:`from_words`).
            corpus: the captions to count document frequencies in; default: the references.
            end_token: whether the end token counts as a word; see the module's docstring.
            captions_are_documents: whether document frequencies count captions; they count images otherwise, with all
                their captions.

        Raises:
            ValueError: an image has no references, or the corpus has no images.
        """
        self._end_token = end_token
        ending = [Vocabulary.end_id] if end_token else []
        own = _flatten(references, ending)
        if not own.counts.all():
            raise ValueError(f"image {int(np.argmin(own.counts))} of the references has no captions")
        others = _flatten((), ending) if corpus is None else _flatten(corpus, ending)
        first_document = 0 if corpus is None else len(own.counts)
        # References come first in all arrays below; the corpus, where it is another one, follows.
        counts, lengths, words = map(np.concatenate, zip(own, others, strict=True))
        documents = int(counts[first_document:].sum()) if captions_are_documents else len(counts) - first_document
        if not documents:
            raise ValueError("document frequencies need at least one image with captions")
        self._weights = np.log(documents) - np.log(np.maximum(np.arange(documents + 1), 1))
        """(documents + 1,) float64, log(documents / frequency) by frequency; an unseen n-gram counts as seen once."""
        self._counts = own.counts
        self._first = np.cumsum(own.counts) - own.counts
        self._lengths = lengths
        self._starts = np.cumsum(lengths) - lengths
        # Numbers of images and captions fit in 32 bits; large corpora have millions of words.
        image_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        caption_at = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        remaining = (np.repeat(self._starts + lengths, lengths) - np.arange(len(words))).astype(np.int32)
        self._tables: list[_NgramTable] = []
        norms = []
        for n in range(1, MAX_N + 1):
            at = np.flatnonzero(remaining >= n)
            keys = words[at] if n == 1 else self._join(self._tables[-1].numbers[at], at + n - 1)
            # A stable order: the places of an n-gram are in the order of images and captions, too.
            order = np.argsort(keys, kind="stable")
            keys, at = keys[order], at[order]
            caption = caption_at[at]
            image = image_of[caption]
            starts_ngram = _differs(keys)
            number = np.cumsum(starts_ngram, dtype=np.int32) - 1
            table = keys[starts_ngram]
            document = caption if captions_are_documents else image
            in_document = (starts_ngram | _differs(document)) & (image >= first_document)
            frequencies = np.bincount(number[in_document], minlength=len(table) + 1).astype(np.int32)
            numbers = np.full(len(words), _NO_NGRAM, np.int32)
            numbers[at] = number
            self._tables.append(_NgramTable(table, frequencies, numbers))
            in_caption = np.flatnonzero(starts_ngram | _differs(caption))
            times = np.diff(in_caption, append=len(at))
            weights = self._weights[frequencies[number[in_caption]]]
            squares = np.bincount(caption[in_caption], (times * weights) ** 2, len(lengths))
            norms.append(np.sqrt(squares))
        self._norms = np.stack(norms)

    @classmethod
    def from_words(
        cls,
        references: Iterable[Sequence[Sequence[str]]],
        vocabulary: Vocabulary,
        *,
        end_token: bool,
        captions_are_documents: bool = False,
    ) -> "CiderD":
        """Index captions as words; words outside the vocabulary stay distinct and count in the references."""
        ids = {word: index for index, word in enumerate(vocabulary.words)}
        encoded = (([ids.setdefault(word, len(ids)) for word in words] for words in group) for group in references)
        return cls(encoded, end_token=end_token, captions_are_documents=captions_are_documents)

    def score(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Score k captions for each of B images.

        Args:
            images: (B,) integers, indices into the references.
            words: (B, k, T) integers, T >= 1, ids up to and including the end token, then padding, as beam search
                returns them. A caption without an end token was cut at T.

        Returns:
            (B, k) float64 in [0, 10].
        """
        batch, beams, width = words.shape
        stopped = (words == Vocabulary.end_id) | (words == Vocabulary.padding_id)
        cut = ~stopped.any(axis=-1)
        lengths = np.where(cut, width, stopped.argmax(axis=-1))
        if self._end_token:
            at_stop = np.take_along_axis(words, np.minimum(lengths, width - 1)[..., None], axis=-1)[..., 0]
            lengths = lengths + (~cut & (at_stop == Vocabulary.end_id))
        references, reference_lengths, norms, real = self._references(images)
        # In bigrams, as pycocoevalcap counts.
        difference = np.maximum(lengths - 1, 0)[:, None] - np.maximum(reference_lengths - 1, 0)[..., None]
        penalty = np.exp(-(difference**2) / (2 * SIGMA**2))
        similarity = np.zeros((batch, len(real[0]), beams))
        flat, flat_lengths = words.reshape(-1, width), lengths.reshape(-1, 1)
        same_word = flat[:, :, None] == flat[:, None, :]
        same, numbers = same_word, np.empty(0)
        first = self._find(1, flat)
        for n in range(1, min(MAX_N, width) + 1):
            if n == 1:
                numbers = first
            else:
                same = same[:, :-1, :-1] & same_word[:, n - 1 :, n - 1 :]
                before, last = numbers[:, :-1], first[:, n - 1 :]
                found = self._find(n, before * len(self._tables[0].keys) + last)
                numbers = np.where((before == _UNSEEN) | (last == _UNSEEN), _UNSEEN, found)
            whole = np.arange(width - n + 1) <= flat_lengths - n
            # (B * k, T - n + 1): how often the n-gram at a position occurs in its caption.
            times = same.view(np.uint8).sum(axis=1, dtype=np.uint16)
            squared = np.where(whole, self._weights[self._tables[n - 1].frequencies[numbers]] ** 2, 0.0)
            norm = np.sqrt((times * squared).sum(axis=-1)).reshape(batch, beams)
            # (L, B, G, k * T): the long axis last and the summed one first keep these comparisons fast.
            equal = references[n - 1][..., None] == numbers.astype(np.int32).reshape(batch, 1, -1)
            matches = equal.view(np.uint8).sum(axis=0, dtype=np.uint16)
            # An n-gram that occurs c times is met at c positions, so each position counts 1 / c.
            share = (squared / times).reshape(batch, 1, -1)
            products = np.minimum(matches, times.reshape(batch, 1, -1)) * matches * share
            products = products.reshape(batch, -1, beams, width - n + 1).sum(axis=-1)
            scale = norms[n - 1][..., None] * norm[:, None]
            similarity += np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
        similarity *= penalty * real[..., None]
        return MAX_SCORE * similarity.sum(axis=1) / MAX_N / self._counts[images][:, None]

    def _join(self, numbers: np.ndarray, last_at: np.ndarray) -> np.ndarray:
        """Compute keys of n-grams from the numbers of their beginnings and the positions of their last words."""
        words = self._tables[0]
        return numbers.astype(np.int64) * len(words.keys) + words.numbers[last_at]

    def _references(self, images: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """Gather the images' references, G the most that any of them has, L the longest.

        Returns:
            For each n the n-gram numbers (L, B, G), lengths (B, G) in words, norms (MAX_N, B, G), and (B, G) bool,
            False where an image has fewer than G references.
        """
        counts = self._counts[images]
        place = np.arange(counts.max())
        real = place < counts[:, None]
        captions = self._first[images][:, None] + np.where(real, place, 0)
        lengths = self._lengths[captions]
        steps = np.arange(lengths.max())[:, None, None]
        inside = steps < lengths
        at = np.where(inside, self._starts[captions] + steps, 0)
        numbers = [np.where(inside, table.numbers[at], _NO_NGRAM) for table in self._tables]
        return numbers, lengths, self._norms[:, captions], real

    def _find(self, n: int, keys: np.ndarray) -> np.ndarray:
        """Look up the numbers of n-grams by key, ``_UNSEEN`` for those that the table lacks."""
        table = self._tables[n - 1].keys
        if not len(table):
            return np.full(keys.shape, _UNSEEN)
        place = np.minimum(np.searchsorted(table, keys), len(table) - 1)
        return np.where(table[place] == keys, place, _UNSEEN)


class TextCiderD:
    """CIDEr-D of captions as text: equal to the toolkit's CIDEr where the corpus is the references."""

    def __init__(self, references: References, corpus: Iterable[Sequence[str]] | None = None) -> None:
        """Index the references and the corpus.
        ``corpus``: for each image of another corpus its captions, by the same tokeniser: document frequencies are
        counted in it; default: the references.

        Raises:
            ValueError: an image has no references, or the corpus has no images.
        """
        numbers = count(max(Vocabulary.end_id, Vocabulary.padding_id) + 1)
        self._ids: defaultdict[str, int] = defaultdict(lambda: next(numbers))
        self._scorer = CiderD(
            [self._encode(captions) for captions in references.values()],
            None if corpus is None else [self._encode(captions) for captions in corpus],
            end_token=False,
        )
        self._image_at = {image: number for number, image in enumerate(references)}

    def metric(self, candidates: Captions) -> Metric:
        """Score a caption for each image of the references, space-joined tokens by the same tokeniser."""
        return mean_metric("cider_d", self.score(list(candidates.values()), list(candidates)))

    def score(self, captions: Sequence[str], images: Sequence[str]) -> NDArray[np.float64]:
        """Score captions against the references of any images, (len(captions),) float64.

        Args:
            captions: space-joined tokens by the same tokeniser.
            images: for each caption the image whose references it is compared with.
        """
        encoded = self._encode(captions)
        numbers = np.array([self._image_at[image] for image in images])
        scores = [
            self._scorer.score(numbers[start : start + _BATCH], _padded(encoded[start : start + _BATCH]))[:, 0]
            for start in range(0, len(encoded), _BATCH)
        ]
        return np.concatenate(scores) if scores else np.empty(0)

    def _encode(self, captions: Iterable[str]) -> list[list[int]]:
        return [[self._ids[word] for word in caption.split()] for caption in captions]


def _padded(captions: Sequence[Sequence[int]]) -> np.ndarray:
    """Pad captions to (B, 1, T) int64, with at least one padding token at the end of each."""
    words = np.full((len(captions), 1, max(map(len, captions)) + 1), Vocabulary.padding_id)
    for row, caption in zip(words, captions, strict=True):
        row[0, : len(caption)] = caption
    return words


def cider_btw(candidates: Captions, references: References, similar: Mapping[str, Sequence[str]]) -> Metric:
    """Compute CIDErBtw (Wang, Xu, Wang, Chan, ECCV 2020): CIDEr against the human captions of similar images.

    For the K images that are most similar to the caption's own one, with N_k human captions each::

        CIDErBtw(c) = 1/K sum_k 1/N_k sum_n CIDEr(c, c_n^k)

    A low value is a caption that fits its own image and no other. Document frequencies are those of the scored
    references, as of the toolkit's CIDEr, so that the two values stand on one scale. The authors find similar images by
    a trained image-to-sentence retrieval; here they are given (:mod:`training.evaluation.similar_images`).
    ``similar``: for each image the similar ones, all of them in ``references``. An image without any has no value.

    Returns:
        ``cider_btw``, in [0, 10]; NaN for an image without similar ones.
    """
    pairs = [(row, other) for row, image in enumerate(candidates) for other in similar[image]]
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    captions = list(candidates.values())
    scores = TextCiderD(references).score([captions[row] for row in rows], [other for _, other in pairs])
    sums, counts = (np.bincount(rows, weights, minlength=len(captions)) for weights in (scores, None))
    per_image = ratio(np.stack([sums, counts], axis=1))
    known = counts > 0
    return Metric("cider_btw", np.stack([np.where(known, per_image, 0.0), known], axis=1), ratio, per_image)
