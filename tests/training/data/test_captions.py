"""Captions as words and as ids."""

from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.captions import caption_ids, count_words, pad_captions, tokenize_captions

VOCABULARY = Vocabulary((*SPECIAL, "a", "b"))


def test_captions_become_words_which_are_counted_as_often_as_their_image_occurs():
    words = tokenize_captions(["A dog, a man's dog.", "..."], "spaces")
    assert words == [["a", "dog", "a", "mans", "dog"], []]
    assert count_words([words, words]) == {"a": 4, "dog": 4, "mans": 2}


def test_captions_begin_and_end_with_their_tokens_and_one_that_is_cut_has_no_end():
    captions = [["a", "b", "b", "a"], ["a", "b", "b"], ["a", "b"], ["x"], []]
    found = pad_captions([caption_ids(captions, VOCABULARY, 3)])
    assert found.tolist() == [[[1, 4, 5, 5], [1, 4, 5, 5], [1, 4, 5, 2], [1, 3, 2, 0], [1, 2, 0, 0]]]


@given(st.lists(st.lists(st.lists(st.integers(1, 9), min_size=1), min_size=1, max_size=4), min_size=1, max_size=6))
def test_images_have_their_captions_and_padding(ids):
    found = pad_captions(ids)
    assert [[[i for i in row if i] for row in group if any(row)] for group in found.tolist()] == ids
    longest = max(len(caption) for group in ids for caption in group)
    assert found.shape == (len(ids), max(map(len, ids)), longest)
