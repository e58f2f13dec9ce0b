"""Captions as padded word ids, grouped by image."""

from collections.abc import Sequence

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import Vocabulary


def encode_captions(captions: Sequence[list[str]], vocabulary: Vocabulary, max_words: int) -> list[list[int]]:
    """Begin token, at most ``max_words - 1`` words, end token, for every caption."""
    return [[vocabulary.begin_id, *vocabulary.encode(words[: max_words - 1]), vocabulary.end_id] for words in captions]


def pad_groups(groups: Sequence[list[list[int]]], padding_id: int) -> Tensor:
    """The captions of B images as one tensor.

    Args:
        groups: for each image its encoded captions; an image with fewer than another gets all-padding rows.

    Returns:
        (B, G, T) int64, T the longest caption of the batch.
    """
    count = max(len(group) for group in groups)
    length = max(len(caption) for group in groups for caption in group)
    padded = torch.full((len(groups), count, length), padding_id)
    for b, group in enumerate(groups):
        for g, caption in enumerate(group):
            padded[b, g, : len(caption)] = torch.tensor(caption)
    return padded
