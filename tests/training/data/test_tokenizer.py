"""Tokenisation of captions, and vocabularies."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL
from training.data.tokenizer import RULES, build_vocabulary, script_of, tokenize


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("A child in a pink dress .", ["a", "child", "in", "a", "pink", "dress"]),
        ('The man\'s dog, "Rex", runs!', ["the", "man", "'s", "dog", "rex", "runs"]),
        ("  ", []),
        ("2 dogs", ["2", "dogs"]),
    ],
)
def test_captions_become_lower_case_words_without_punctuation(caption, words):
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
def test_x_lans_words_are_split_at_spaces_once_punctuation_is_deleted(caption, words):
    assert RULES["spaces"].words(caption) == words


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("Кошка сидит на столе.", "кошка сидит на столе"),
        ("Une fenêtre, l'été !", "une fenêtre l'été"),
        ("cafe\u0301", "café"),
        ("一只猫在桌上。", "一 只 猫 在 桌 上"),
        ("แมว", "แ ม ว"),
        ("एक बिल्ली", "एक बिल्ली"),
        ("a man's hat, 3.5 m", "a man's hat 3.5 m"),
        ("... !", ""),
    ],
)
def test_unicode_splits_captions_of_any_script_and_loses_no_letter(caption, words):
    assert RULES["unicode"].words(caption) == words.split()


def test_the_script_of_a_word_is_that_of_its_letters():
    words = ["café", "кошка", "猫", "3"]
    assert list(map(script_of, words)) == ["latin", "cyrillic", "cjk", "latin"]


@given(st.lists(st.sampled_from("abcdef"), max_size=80), st.integers(1, 4))
def test_the_vocabulary_holds_exactly_the_words_seen_often_enough(spoken, minimum):
    words = build_vocabulary(Counter(spoken), minimum).words[len(SPECIAL) :]
    assert set(words) == {word for word in spoken if spoken.count(word) >= minimum}
    assert list(words) == sorted(words, key=lambda word: (-spoken.count(word), word))
