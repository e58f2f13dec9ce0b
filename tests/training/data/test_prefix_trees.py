"""Prefix trees hold exactly the prefixes and the next words of the captions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.prefix_trees import prefix_trees
from training.models.captioner import PADDING_ID

BEGIN = 1
words = st.lists(st.integers(2, 5), min_size=1, max_size=5).map(lambda ids: [BEGIN, *ids])
batches = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=3)


def padded(groups):
    """Pad the captions of images to one array, (B, G, T)."""
    captions = [caption for group in groups for caption in group]
    shape = len(groups), max(map(len, groups)), max(map(len, captions))
    array = np.full(shape, PADDING_ID, np.int64)
    for b, group in enumerate(groups):
        for g, caption in enumerate(group):
            array[b, g, : len(caption)] = caption
    return array


def prefixes(group):
    """The prefixes of an image's captions that have a next word."""
    return {tuple(caption[:length]) for caption in group for length in range(1, len(caption))}


@given(batches)
def test_every_different_prefix_has_one_node(groups):
    tree, _ = prefix_trees(padded(groups))
    assert tree.words.shape[1] == max(len(prefixes(group)) for group in groups)
    for image, group in enumerate(groups):
        nodes = [q for q, word in enumerate(tree.words[image].tolist()) if word != PADDING_ID]
        found = []
        for node in nodes:
            seen = [q for q in nodes if tree.visible[image, node, q]]
            by_position = sorted(seen, key=lambda q: int(tree.positions[image, q]))
            assert [int(tree.positions[image, q]) for q in by_position] == list(range(len(seen)))
            found.append(tuple(tree.words[image, by_position].tolist()))
            place = divmod(int(tree.occurrence[image, node]), tree.captions.shape[2])
            assert tree.captions[image, place[0], : place[1] + 1].tolist() == list(found[-1])
        assert len(found) == len(set(found))
        assert set(found) == prefixes(group)


@given(batches, st.integers(0, 100))
def test_next_words_sum_the_weights_of_their_captions(groups, seed):
    captions = padded(groups)
    weights = np.random.default_rng(seed).uniform(0.5, 2, captions.shape[:2])
    tree, next_words = prefix_trees(captions, weights)
    count = tree.words.shape[1]
    expected = {}
    for image, group in enumerate(groups):
        for caption, weight in zip(group, weights[image], strict=False):
            for place in range(1, len(caption)):
                pair = image, tuple(caption[:place]), caption[place]
                expected[pair] = expected.get(pair, 0) + weight
    found = {}
    for node, word, total in zip(*(part.tolist() for part in next_words[:3]), strict=True):
        image, q = divmod(node, count)
        prefix = tree.words[image, tree.visible[image, q]].tolist()
        found[image, tuple(prefix), word] = total
    assert found == pytest.approx(expected, rel=1e-5)


@given(batches)
def test_values_of_next_words_return_to_their_captions(groups):
    captions = padded(groups)
    _, next_words = prefix_trees(captions)
    arranged = next_words.by_caption(next_words.words.float())
    assert arranged.tolist() == captions[..., 1:].tolist()


def test_captions_without_a_word_to_predict_are_refused():
    with pytest.raises(ValueError, match="no caption has a word to predict"):
        prefix_trees(np.array([[[BEGIN, PADDING_ID]]]))
