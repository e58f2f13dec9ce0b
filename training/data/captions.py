"""Captions as words, in arrays that all processes of a machine map, and as padded word ids of a vocabulary."""

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.files import replaced_atomically
from training.data.tokenizer import RULES

_FORMAT = 1
"""Version of the cache file."""
_COUNTED_AT_A_TIME = 1 << 12
"""Images whose words are counted at once: bounds the memory that this takes."""

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

        Args:
            captions: for each image its captions, as words.
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

    def word_counts(self) -> dict[str, int]:
        """Count how often each word occurs; the words of an image that is in the list twice count twice."""
        images = len(self.image_starts) - 1
        times = np.bincount(self.images, minlength=images)
        counts = np.zeros(len(self.words), np.int64)
        for start in range(0, images, _COUNTED_AT_A_TIME):
            bounds = self.image_starts[start : start + _COUNTED_AT_A_TIME + 1]
            captions = self.caption_starts[bounds[0] : bounds[-1] + 1]
            of_captions = np.repeat(times[start : start + _COUNTED_AT_A_TIME], np.diff(bounds))
            of_words = np.repeat(of_captions, np.diff(captions))
            ids = self.ids[captions[0] : captions[-1]]
            counts += np.bincount(ids, of_words, len(counts)).astype(np.int64)
        return {word: number for word, number in zip(self.words, counts.tolist(), strict=True) if number}


def tokenize_captions(captions: Iterable[Sequence[str]], rule: str) -> TokenizedCaptions:
    """Split captions into words.

    Args:
        captions: for each image its captions, as written.
        rule: a key of :data:`training.data.tokenizer.RULES`.
    """
    split = RULES[rule].words
    return TokenizedCaptions.from_words(map(split, group) for group in captions)


def load_or_tokenize(
    folder: Path, captions: Mapping[str, Sequence[str]], images: Sequence[str], rule: str
) -> TokenizedCaptions:
    """Split the captions of images into words; map the result from ``folder`` where that was done before.

    Processes that start together all split and write the same file: that takes seconds, and none waits for another.

    Args:
        folder: of the cache files.
        captions: captions of each image, as written.
        images: image ids.
        rule: a key of :data:`training.data.tokenizer.RULES`.

    Raises:
        OSError: the cache file cannot be written.
    """
    key = _key(captions, images, rule)
    path = folder / f"captions-{key[:16]}.safetensors"
    if (cached := _open(path, key)) is not None:
        return cached
    tokenized = tokenize_captions((captions[image] for image in images), rule)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: getattr(tokenized, name) for name in ("ids", "caption_starts", "image_starts")}
    with replaced_atomically(path) as unfinished:
        save_file(arrays, unfinished, metadata={"key": key, "words": json.dumps(tokenized.words)})
    return _open(path, key) or tokenized  # the mapped file instead of a copy in each process


def _key(captions: Mapping[str, Sequence[str]], images: Iterable[str], rule: str) -> str:
    """Compute a digest of the captions in their order and of the rule."""
    digest = hashlib.sha256(json.dumps([_FORMAT, rule, RULES[rule].version]).encode())
    for image in images:
        digest.update(json.dumps(captions[image]).encode())
    return digest.hexdigest()


def _open(path: Path, key: str) -> TokenizedCaptions | None:
    """Map a cache file; None if there is none, or it is damaged or has other captions."""
    try:
        # PyTorch's tensors are mapped; the framework "np" would copy them.
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            words: list[str] = json.loads(metadata["words"])
            arrays = [file.get_tensor(name).numpy() for name in ("ids", "caption_starts", "image_starts")]
    except (OSError, SafetensorError, KeyError, ValueError):
        return None
    ids, caption_starts, image_starts = arrays
    intact = (
        metadata.get("key") == key
        and _are_starts(image_starts, len(caption_starts) - 1)
        and _are_starts(caption_starts, len(ids))
        and (not len(ids) or (ids.min() >= 0 and ids.max() < len(words)))
    )
    return TokenizedCaptions(words, ids, caption_starts, image_starts) if intact else None


def _are_starts(starts: Integers, end: int) -> bool:
    """Return whether ``starts`` divides ``end`` items into consecutive parts."""
    return len(starts) > 0 and starts[0] == 0 and starts[-1] == end and bool((np.diff(starts) >= 0).all())


class EncodedCaptions:
    """Captions as the begin token, the ids of the words and the end token.

    A caption longer than ``max_words``, end token included, is cut and has no end token, so that no model is trained
    to end in the middle of a phrase. Captions are encoded when they are read, so an image takes no memory.
    """

    def __init__(self, captions: TokenizedCaptions, vocabulary: Vocabulary, max_words: int) -> None:
        """
        Args:
            captions: of the images.
            vocabulary: other words have its unknown id.
            max_words: longest caption, end token included.
        """
        self._captions, self._max_words = captions, max_words
        self._ids = np.array(vocabulary.encode(captions.words), np.int64)

    def __len__(self) -> int:
        return len(self._captions)

    def read(self, images: NDArray[np.integer]) -> NDArray[np.int64]:
        """Read the captions of B images.

        Args:
            images: (B,) indices into the captions.

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
