"""Tokenisation, vocabularies, encoding and padding of captions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.captions import encode_captions, pad_groups
from training.data.flickr8k import Flickr8k
from training.data.tokenizer import RULES, build_vocabulary, tokenize


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("A child in a pink dress .", ["a", "child", "in", "a", "pink", "dress"]),
        ('The man\'s dog, "Rex", runs!', ["the", "man", "'s", "dog", "rex", "runs"]),
        ("  ", []),
        ("2 dogs", ["2", "dogs"]),
    ],
)
def test_captions_become_lower_case_words_without_punctuation(caption: str, words: list[str]) -> None:
    assert tokenize(caption) == words


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("A child in a pink dress .", ["a", "child", "in", "a", "pink", "dress"]),
        ('The man\'s dog, "Rex", runs!', ["the", "mans", "dog", "rex", "runs"]),
        ("A snow-covered hill.", ["a", "snowcovered", "hill"]),
        (" . ", []),
    ],
)
def test_x_lans_words_are_split_at_spaces_once_punctuation_is_deleted(caption: str, words: list[str]) -> None:
    assert RULES["x_lan"].words(caption) == words


def test_m2_keeps_words_seen_five_times_and_x_lan_six() -> None:
    assert RULES["m2"].words is tokenize
    assert {name: rule.minimum_count for name, rule in RULES.items()} == {"m2": 5, "x_lan": 6}


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=20), st.integers(1, 4))
def test_the_vocabulary_holds_exactly_the_words_seen_often_enough(captions: list[list[str]], minimum: int) -> None:
    words = build_vocabulary(captions, minimum).words[len(SPECIAL) :]
    spoken = [word for caption in captions for word in caption]
    assert set(words) == {word for word in spoken if spoken.count(word) >= minimum}
    assert list(words) == sorted(words, key=lambda word: (-spoken.count(word), word))


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
    """682 of the 30,000 captions of Flickr8k's training split are longer than 19 words and an end token."""
    dataset = Flickr8k(data_dir / "flickr8k")
    captions = [tokenize(text) for image in dataset.split("train") for text in dataset.captions[image]]
    vocabulary = build_vocabulary(captions, 5)
    encoded = encode_captions(captions, vocabulary, 20)
    cut = [ids for ids in encoded if ids[-1] != vocabulary.end_id]
    assert (len(cut), len(encoded)) == (682, 30_000)
    assert {len(ids) for ids in cut} == {21}


@given(st.lists(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=7), min_size=1, max_size=5), min_size=1))
def test_padded_groups_contain_the_captions_unchanged(groups: list[list[list[int]]]) -> None:
    padded = pad_groups(groups, 0)
    read = [[[i for i in row if i] for row in group if any(row)] for group in padded.tolist()]
    assert read == groups
    assert padded.shape[2] == max(len(caption) for group in groups for caption in group)
