"""Words of captions are learned from features and labels."""

import numpy as np
import pytest

from recipes.caption_sets.word_teacher import MIN_PHOTOGRAPHS, Example, WordTeacher


@pytest.fixture(scope="module")
def teacher() -> WordTeacher:
    """Snow is seen in the features, a man is known by his label, and the word "nice" is said of half at random."""
    random = np.random.default_rng(0)
    examples = []
    for number in range(200):
        features = random.normal(size=8).astype(np.float32)
        snow, man = number % 4 == 0, number % 3 == 0
        features[0] += 4 * snow
        words = ["photo", *["snow"] * snow, *["man"] * man, *["nice"] * bool(random.random() < 0.5), f"rare{number}"]
        examples.append(Example(features, ["person"] if man else ["dog"], [words] * 5))
    return WordTeacher(examples)


def test_words_are_confirmed_by_features_and_by_labels(teacher: WordTeacher) -> None:
    snow = np.array([4, 0, 0, 0, 0, 0, 0, 0], np.float32)
    assert "snow" in teacher.confirmed_words(snow, ["dog"])
    assert "snow" not in teacher.confirmed_words(0 * snow, ["dog"])
    with_label, without = (teacher.confirmed_words(0 * snow, [label]).get("man", 0.0) for label in ("person", "dog"))
    assert with_label > without


def test_words_of_few_photographs_are_not_learned(teacher: WordTeacher) -> None:
    assert teacher.words == sorted(["man", "nice", "photo", "snow"])
    assert MIN_PHOTOGRAPHS > 1


def test_a_word_that_nothing_tells_is_not_relied_on(teacher: WordTeacher) -> None:
    assert teacher.least[teacher.words.index("nice")] > teacher.least[teacher.words.index("photo")]
