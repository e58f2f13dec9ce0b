"""Captions as words and as padded word ids of a vocabulary."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.tokenizer import RULES

Captions: TypeAlias = Sequence[Sequence[Sequence[str]]]
"""For each image its captions, as words."""


def tokenize_captions(captions: Iterable[str], rule: str) -> list[list[str]]:
    """Split the captions of an image into words; ``rule`` is a key of :data:`training.data.tokenizer.RULES`."""
    split = RULES[rule].words
    return [list(map(sys.intern, split(caption))) for caption in captions]  # COCO has millions of words


def count_words(captions: Captions) -> Counter[str]:
    """Count how often each word occurs; the words of an image that is there twice count twice."""
    return Counter(word for group in captions for caption in group for word in caption)


def caption_ids(captions: Sequence[Sequence[str]], vocabulary: Vocabulary, max_words: int) -> list[list[int]]:
    """Encode the captions of an image as the begin token, the ids of the words and the end token.

    A caption longer than ``max_words``, end token included, is cut and has no end token, so that no model is trained
    to end in the middle of a phrase. Words outside the vocabulary have its unknown id.
    """
    begin, end = vocabulary.begin_id, vocabulary.end_id
    return [[begin, *[*vocabulary.encode(words), end][:max_words]] for words in captions]


def pad_captions(ids: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.int64]:
    """Pad the captions of B images, as :func:`caption_ids` returns them.

    Returns:
        (B, G, T), G of the image with most captions, T of the longest caption; missing captions are padding.
    """
    longest = max(len(caption) for group in ids for caption in group)
    padded = np.full((len(ids), max(map(len, ids)), longest), Vocabulary.padding_id, np.int64)
    for image, group in enumerate(ids):
        for place, caption in enumerate(group):
            padded[image, place, : len(caption)] = caption
    return padded
