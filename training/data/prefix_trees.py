"""The captions of a batch as prefix trees, with the words that follow each prefix.

Made on the host by numpy: in the reading threads for human captions, after the search for sampled ones.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.models.captioner import PADDING_ID, PrefixTree


class NextWords(NamedTuple):
    """The different pairs of a prefix and its next word, P in a batch, and their weights in a loss."""

    nodes: Tensor
    """(P,) int64, b * Q + q of the prefix."""
    words: Tensor
    """(P,) int64, ids of the next words."""
    weights: Tensor
    """(P,) float32, sum of the weights of the captions that have this word after this prefix."""
    places: Tensor
    """(B, G, T) int64, which of the pairs each word of each caption is; P for padding."""

    def select(self, values: Tensor) -> Tensor:
        """Select the values of the next words, (P,), from those of all nodes and words, (B * Q, V)."""
        # The gradient of selecting from one axis is faster than that of selecting from two.
        return values.flatten().index_select(0, self.nodes * values.shape[-1] + self.words)

    def by_caption(self, values: Tensor) -> Tensor:
        """Arrange values of the next words, (P,), by caption, (B, G, T), with 0 for padding."""
        padded = torch.cat([values, values.new_zeros(1)])
        return padded.index_select(0, self.places.flatten()).view(self.places.shape)


class CaptionTrees(NamedTuple):
    """Captions of a batch and the words to predict."""

    tree: PrefixTree
    next_words: NextWords


def prefix_trees(captions: NDArray[np.int64], weights: NDArray[np.floating] | None = None) -> CaptionTrees:
    """Make the prefix trees of the captions of B images.

    Args:
        captions: (B, G, T + 1) from the begin token to the last word that is predicted, padded. An image may have
            fewer than G captions; the others are padding.
        weights: (B, G), weights of the captions in the loss; None: 1 each.

    Raises:
        ValueError: there is no caption with a word after the begin token.
    """
    real = captions[..., 1:] != PADDING_ID
    if not real.any():
        raise ValueError("no caption has a word to predict")
    # A prefix ends with a word that has a next word.
    words = np.where(real, captions[..., :-1], PADDING_ID)
    nodes, new = _number_prefixes(words, real)
    batch, group, length = words.shape
    count = int(nodes.max()) + 1
    tree_words = np.full((batch, count), PADDING_ID, np.int64)
    positions, occurrence = np.zeros((2, batch, count), np.int64)
    visible = np.repeat(np.eye(count, dtype=bool)[None], batch, axis=0)
    b, g, t = new.nonzero()
    q = nodes[new]
    tree_words[b, q], positions[b, q], occurrence[b, q] = words[new], t, g * length + t
    b, g, t, s = (real[..., None] & np.tri(length, dtype=bool)).nonzero()
    visible[b, nodes[b, g, t], nodes[b, g, s]] = True
    tree = PrefixTree(*map(torch.from_numpy, (tree_words, positions, visible, words, occurrence)))
    if weights is None:
        weights = np.ones((batch, group))
    flat_nodes = nodes + np.arange(batch)[:, None, None] * count
    return CaptionTrees(tree, _next_words(flat_nodes, captions[..., 1:], real, weights))


def _number_prefixes(words: NDArray[np.int64], real: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Number the different prefixes of each image.

    Args:
        words: (B, G, T), words that end prefixes, padded.
        real: (B, G, T), False for padding.

    Returns:
        (B, G, T) the number of each prefix, from 0 for each image; and (B, G, T) whether it is the first occurrence.
    """
    batch, group, length = words.shape
    equal = np.logical_and.accumulate(words[:, :, None] == words[:, None], axis=-1)  # (B, G, G, T)
    first = equal.argmax(axis=2)  # the first caption with the same prefix
    new = real & (first == np.arange(group)[:, None])
    numbers = new.reshape(batch, -1).cumsum(axis=1).reshape(new.shape) - 1
    return numbers[np.arange(batch)[:, None, None], first, np.arange(length)], new


def _next_words(
    nodes: NDArray[np.int64], words: NDArray[np.int64], real: NDArray[np.bool_], weights: NDArray[np.floating]
) -> NextWords:
    """Join equal pairs of a prefix and its next word.

    Args:
        nodes, words, real: (B, G, T); ``real`` is False for padding.
        weights: (B, G).
    """
    vocabulary = int(words.max()) + 1
    pairs, inverse = np.unique((nodes * vocabulary + words)[real], return_inverse=True)
    sums = np.bincount(inverse, np.broadcast_to(weights[..., None], real.shape)[real]).astype(np.float32)
    places = np.full(real.shape, len(pairs), np.int64)
    places[real] = inverse
    return NextWords(*map(torch.from_numpy, (pairs // vocabulary, pairs % vocabulary, sums, places)))
