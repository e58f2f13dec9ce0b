"""Words to ids and back, and ids to sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary, join_words

words = st.text(st.characters(categories=("Ll", "Nd")), min_size=1, max_size=8)


@given(st.lists(words, unique=True, max_size=30), st.data())
def test_known_words_survive_encoding_and_decoding(known, data):
    vocabulary = Vocabulary((*SPECIAL, *known))
    sentence = data.draw(st.lists(st.sampled_from(known), max_size=10)) if known else []
    assert vocabulary.decode(vocabulary.encode(sentence)) == sentence


def test_decoding_stops_at_the_end_token_and_leaves_special_words_out():
    vocabulary = Vocabulary((*SPECIAL, "a", "dog"))
    assert vocabulary.decode([1, 4, 3, 5, 2, 4]) == ["a", "dog"]


def test_pieces_are_joined_to_words():
    vocabulary = Vocabulary((*SPECIAL, "skate", "##board", "a", "##s"), "##")
    ids = [1, 5, 6, 4, 5, 7, 6, 2, 7]
    assert vocabulary.decode(ids) == ["board", "a", "skateboards", "a"]
    assert vocabulary.word_places(ids) == [[1], [2], [3, 4, 5], [6]]


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (["a", "man", "'s", "dog"], "a man's dog"),
        (["it", "does", "n't", "run"], "it doesn't run"),
        ([], ""),
        (["'s"], "'s"),
    ],
)
def test_clitics_are_joined_to_the_word_before_them(tokens, sentence):
    assert join_words(tokens) == sentence


@pytest.mark.parametrize("bad", [(), ("a",), (*SPECIAL, "a", "a"), (*SPECIAL, ""), (*SPECIAL, "a b")])
def test_a_malformed_vocabulary_is_refused(bad):
    with pytest.raises(ValueError, match=r"vocabulary"):
        Vocabulary(bad)
