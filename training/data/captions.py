"""Captions as words and as padded word ids of a vocabulary."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count, pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.tokenizer import RULES

Integers = NDArray[np.integer[Any]]


class TokenizedCaptions(Sequence[list[list[str]]]):
    """For each image of a list its captions, as words.

    The captions are stored as ids. Words are looked up when an image is read.
    """

    def __init__(
        self,
        words: Sequence[str],
        ids: Integers,
        caption_starts: Integers,
        image_starts: Integers,
        images: Integers | None = None,
    ) -> None:
        """
        Args:
            words: the distinct words, by id.
            ids: (words of all captions,) the captions one after the other.
            caption_starts: (captions + 1,) place in ``ids`` where each caption begins, and their end.
            image_starts: (images + 1,) number of each image's first caption, and that of captions.
            images: (n,) the images of the list, in which an image may occur several times; default: each once.
        """
        self.words, self.ids, self.caption_starts, self.image_starts = words, ids, caption_starts, image_starts
        self.images: Integers = np.arange(len(image_starts) - 1) if images is None else images

    @classmethod
    def from_words(cls, captions: Iterable[Iterable[Iterable[str]]]) -> "TokenizedCaptions":
        """Number the words of captions.
        ``captions``: for each image its captions, as words.
        """
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        ids, caption_starts, image_starts = array("i"), array("q", [0]), array("q", [0])
        for group in captions:
            for words in group:
                ids.extend(map(numbers.__getitem__, words))
                caption_starts.append(len(ids))
            image_starts.append(len(caption_starts) - 1)
        return cls(list(numbers), np.asarray(ids), np.asarray(caption_starts), np.asarray(image_starts))

    def __len__(self) -> int:
        return len(self.images)

    @overload
    def __getitem__(self, place: int) -> list[list[str]]: ...
    @overload
    def __getitem__(self, place: slice) -> "TokenizedCaptions": ...
    def __getitem__(self, place: int | slice) -> "list[list[str]] | TokenizedCaptions":
        if isinstance(place, slice):
            return self.select(np.arange(len(self))[place])
        image = self.images[place]
        starts = self.caption_starts[self.image_starts[image] : self.image_starts[image + 1] + 1].tolist()
        words = [self.words[index] for index in self.ids[starts[0] : starts[-1]].tolist()]
        return [words[start - starts[0] : stop - starts[0]] for start, stop in pairwise(starts)]

    def select(self, places: Sequence[int] | Integers) -> "TokenizedCaptions":
        """Return the captions of the images at ``places`` of this list, in that order; the arrays are shared."""
        images = self.images[np.asarray(places, np.int64)]
        return TokenizedCaptions(self.words, self.ids, self.caption_starts, self.image_starts, images)

    @property
    def captions(self) -> int:
        """Number of captions of all images of the list."""
        return int(np.diff(self.image_starts)[self.images].sum())

    def by_caption(self) -> tuple["TokenizedCaptions", Integers]:
        """Return the captions one by one, and (captions,) the place in this list of the image of each."""
        first, stop = self.image_starts[self.images], self.image_starts[self.images + 1]
        counts = stop - first
        owners = np.repeat(np.arange(len(self)), counts)
        captions = np.arange(len(owners)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        one_each = np.arange(len(self.caption_starts))
        return TokenizedCaptions(self.words, self.ids, self.caption_starts, one_each, captions), owners

    def word_counts(self) -> dict[str, int]:
        """Count how often each word occurs; the words of an image that is in the list twice count twice."""
        times = np.bincount(self.images, minlength=len(self.image_starts) - 1)
        of_captions = np.repeat(times, np.diff(self.image_starts))
        of_words = np.repeat(of_captions, np.diff(self.caption_starts))
        counts = np.bincount(self.ids, of_words, len(self.words)).astype(np.int64)
        return {word: number for word, number in zip(self.words, counts.tolist(), strict=True) if number}


def tokenize_captions(captions: Iterable[Sequence[str]], rule: str) -> TokenizedCaptions:
    """Split captions into words.

    Args:
        captions: for each image its captions, as written.
        rule: a key of :data:`training.data.tokenizer.RULES`.
    """
    split = RULES[rule].words
    return TokenizedCaptions.from_words(map(split, group) for group in captions)


class EncodedCaptions:
    """Captions as the begin token, the ids of the words and the end token.

    A caption longer than ``max_words``, end token included, is cut and has no end token, so that no model is trained
    to end in the middle of a phrase. Captions are encoded when they are read, so an image takes no memory.
    """

    def __init__(self, captions: TokenizedCaptions, vocabulary: Vocabulary, max_words: int) -> None:
        """Take captions; words outside the vocabulary get its unknown id."""
        self._captions, self._max_words = captions, max_words
        self._ids = np.array(vocabulary.encode(captions.words), np.int64)

    def __len__(self) -> int:
        return len(self._captions)

    def read(self, images: NDArray[np.integer]) -> NDArray[np.int64]:
        """Read the captions of B images.
        ``images``: (B,) indices into the captions.

        Returns:
            (B, G, T), G of the image with most captions, T of the longest caption; missing captions are padding.
        """
        source = self._captions
        images = source.images[images]
        first, end = source.image_starts[images], source.image_starts[images + 1]
        places = first[:, None] + np.arange((end - first).max())
        real = places < end[:, None]
        places = np.where(real, places, 0)
        starts = source.caption_starts[places]
        lengths = source.caption_starts[places + 1] - starts
        steps = np.arange(min(int(lengths[real].max()) + 1, self._max_words))
        padded = np.full((*places.shape, 1 + len(steps)), Vocabulary.padding_id, np.int64)
        padded[..., 0][real] = Vocabulary.begin_id
        is_word = real[..., None] & (steps < lengths[..., None])
        padded[..., 1:][is_word] = self._ids[source.ids[(starts[..., None] + steps)[is_word]]]
        padded[..., 1:][real[..., None] & (steps == lengths[..., None])] = Vocabulary.end_id
        return padded
