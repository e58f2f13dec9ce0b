"""Encoding and padding of captions."""

from collections import Counter
from itertools import chain
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.captions import encode_captions, pad_groups
from training.data.flickr8k import Flickr8k
from training.data.tokenizer import build_vocabulary, tokenize


def test_captions_begin_and_end_with_their_tokens_and_one_that_is_cut_has_no_end() -> None:
    vocabulary = Vocabulary((*SPECIAL, "a", "b"))
    captions = [["a", "b", "b", "a"], ["a", "b", "b"], ["a", "b"], ["x"], []]
    assert encode_captions(captions, vocabulary, 3) == [[1, 4, 5, 5], [1, 4, 5, 5], [1, 4, 5, 2], [1, 3, 2], [1, 2]]


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=12), max_size=8), st.integers(1, 10))
def test_only_captions_that_are_not_cut_have_an_end_token(captions: list[list[str]], longest: int) -> None:
    vocabulary = Vocabulary((*SPECIAL, "a", "b", "c"))
    for words, encoded in zip(captions, encode_captions(captions, vocabulary, longest), strict=True):
        assert encoded[0] == vocabulary.begin_id
        assert len(encoded) - 1 == min(longest, len(words) + 1)
        assert (encoded[-1] == vocabulary.end_id) == (len(words) < longest)
        assert vocabulary.decode(encoded) == words[:longest]


def test_long_captions_of_a_training_split_do_not_end_mid_phrase(data_dir: Path) -> None:
    """679 of the 29,955 captions of Flickr8k's training split are longer than 19 words and an end token."""
    dataset = Flickr8k(data_dir / "flickr8k")
    captions = [tokenize(text) for image in dataset.split("train") for text in dataset.captions[image]]
    vocabulary = build_vocabulary(Counter(chain.from_iterable(captions)), 5)
    encoded = encode_captions(captions, vocabulary, 20)
    cut = [ids for ids in encoded if ids[-1] != vocabulary.end_id]
    assert (len(cut), len(encoded)) == (679, 29_955)
    assert {len(ids) for ids in cut} == {21}


@given(st.lists(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=7), min_size=1, max_size=5), min_size=1))
def test_padded_groups_contain_the_captions_unchanged(groups: list[list[list[int]]]) -> None:
    padded = pad_groups(groups, 0)
    read = [[[i for i in row if i] for row in group if any(row)] for group in padded.tolist()]
    assert read == groups
    assert padded.shape[2] == max(len(caption) for group in groups for caption in group)
