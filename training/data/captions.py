"""Captions as padded word ids, grouped by image."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import Vocabulary


def encode_captions(captions: Sequence[list[str]], vocabulary: Vocabulary, max_words: int) -> list[list[int]]:
    """Encode captions as the begin token, the ids of the words and the end token.

    A caption longer than ``max_words``, end token included, is cut and has no end token, so that no model is trained
    to end in the middle of a phrase.
    """
    encoded = [[*vocabulary.encode(words), vocabulary.end_id][:max_words] for words in captions]
    return [[vocabulary.begin_id, *ids] for ids in encoded]


def pad_groups(groups: Sequence[list[list[int]]], padding_id: int) -> NDArray[np.int64]:
    """Pad the captions of B images to one array.

    Args:
        groups: for each image its encoded captions.
        padding_id: id of padding.

    Returns:
        (B, G, T), G of the image with most captions, T of the longest caption; missing captions are padding.
    """
    count = max(len(group) for group in groups)
    length = max(len(caption) for group in groups for caption in group)
    padded = np.full((len(groups), count, length), padding_id, np.int64)
    for b, group in enumerate(groups):
        for g, caption in enumerate(group):
            padded[b, g, : len(caption)] = caption
    return padded
