"""Captions as words and as ids."""

from collections import Counter
from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.captions import EncodedCaptions, TokenizedCaptions, tokenize_captions
from training.data.tokenizer import RULES

groups = st.lists(st.lists(st.text(st.sampled_from("ab c.é"), max_size=12), max_size=3), max_size=5)


@given(groups, st.sampled_from(sorted(RULES)))
def test_each_image_has_the_words_of_its_captions(captions, rule):
    found = tokenize_captions(captions, rule)
    assert list(found) == [[RULES[rule].words(caption) for caption in group] for group in captions]


@given(groups, st.data())
def test_a_selection_has_its_images_in_order_and_counts_their_words_as_often_as_they_occur(captions, data):
    found = tokenize_captions(captions, "spaces")
    places = data.draw(st.lists(st.sampled_from(range(len(captions))), max_size=8) if captions else st.just([]))
    selected = found.select(places)
    assert list(selected) == [found[place] for place in places]
    assert list(selected[1:]) == [found[place] for place in places[1:]]
    assert selected.word_counts() == Counter(word for place in places for words in found[place] for word in words)


VOCABULARY = Vocabulary((*SPECIAL, "a", "b"))
caption_groups = st.lists(
    st.lists(st.lists(st.sampled_from("abx"), max_size=12), min_size=1, max_size=4), min_size=1, max_size=6
)


def unpadded(captions):
    """The captions of each image without padding."""
    return [[[i for i in row if i] for row in group if any(row)] for group in captions.tolist()]


def test_captions_begin_and_end_with_their_tokens_and_one_that_is_cut_has_no_end():
    captions = [["a", "b", "b", "a"], ["a", "b", "b"], ["a", "b"], ["x"], []]
    found = EncodedCaptions(TokenizedCaptions.from_words([captions]), VOCABULARY, 3).read(np.arange(1))
    assert found.tolist() == [[[1, 4, 5, 5], [1, 4, 5, 5], [1, 4, 5, 2], [1, 3, 2, 0], [1, 2, 0, 0]]]


@given(caption_groups, st.integers(1, 10), st.data())
def test_images_have_their_captions_and_padding(captions, longest, data):
    encoded = EncodedCaptions(TokenizedCaptions.from_words(captions), VOCABULARY, longest)
    images = data.draw(st.lists(st.sampled_from(range(len(captions))), min_size=1, max_size=8))
    found = encoded.read(np.array(images))
    expected = [
        [[VOCABULARY.begin_id, *[*VOCABULARY.encode(words), VOCABULARY.end_id][:longest]] for words in captions[image]]
        for image in images
    ]
    assert unpadded(found) == expected
    assert found.shape == (len(images), max(map(len, expected)), max(map(len, chain.from_iterable(expected))))
