"""Pieces of words by byte-pair encoding."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.byte_pairs import BytePairs
from training.errors import DataError

COUNTS = {"dog": 90, "dogs": 40, "skateboard": 30, "boards": 20, "man's": 4, "a": 99, "café": 1}


def test_frequent_words_are_one_piece_and_rare_ones_are_several():
    pairs = BytePairs.learn(COUNTS, 50)
    assert len(pairs.vocabulary) == 50
    assert pairs.vocabulary.words[:4] == SPECIAL
    dog, cafe, unknown = pairs.pieces(["dog", "café", "dög"])
    assert dog == ["dog"]
    assert len(cafe) > 1
    assert "<unk>" in unknown


words = st.sampled_from([*COUNTS, "goa", "oboard", "sad"])


@given(st.lists(st.lists(st.lists(words, max_size=5), max_size=3), max_size=4))
def test_pieces_of_captions_are_joined_to_the_same_words(captions):
    pairs = BytePairs.learn(COUNTS, 40)
    vocabulary = pairs.vocabulary
    joined = [[vocabulary.decode(vocabulary.encode(pieces)) for pieces in own] for own in pairs.split(captions)]
    assert joined == captions


def test_words_of_a_vocabulary_without_pairs_have_the_longest_pieces():
    vocabulary = Vocabulary((*SPECIAL, "s", "skate", "skat", "##eboard", "##board", "##b", "man", "~~'s"), "##", "~~")
    pieces = BytePairs(vocabulary, None).pieces(["skateboard", "man", "'s", "skating"])
    assert pieces == [["skate", "##board"], ["man"], ["~~'s"], ["<unk>"]]


def test_a_vocabulary_smaller_than_the_characters_is_refused():
    with pytest.raises(DataError, match=r"vocabulary_size is 10, .* alone are \d+ pieces"):
        BytePairs.learn(COUNTS, 10)


def test_without_tokenizers_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DataError, match=r"need tokenizers .*pip install"):
        BytePairs.learn(COUNTS, 50)
