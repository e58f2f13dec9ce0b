"""The guidance of captions, and their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.guidance import GuideMode, WordBiases, rank_captions

WORDS = 8
_GUIDES = st.dictionaries(st.integers(1, WORDS - 1), st.tuples(st.floats(-5, 5, width=16), st.integers(1, 3)))


def biases_of(guide: dict[int, tuple[float, int]]) -> WordBiases:
    biases = WordBiases.none(1, WORDS)
    for word, (bias, group) in guide.items():
        biases.bias[0, word], biases.groups[0, word] = bias, group
    return biases


@given(guide=_GUIDES, caption=st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=9))
def test_the_first_word_of_each_group_counts(guide: dict[int, tuple[float, int]], caption: list[int]) -> None:
    expected, said = 0.0, set()
    for word in caption:
        bias, group = guide.get(word, (0.0, 0))
        expected += bias * (group not in said)
        said.add(group)
    found = biases_of(guide).guidance(np.array([[caption]]))
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(expected, abs=1e-4)


def test_captions_are_ranked_by_score_and_guidance_with_all_that_belongs_to_them() -> None:
    words = np.array([[[4, 2, 0], [5, 6, 2], [7, 2, 0]]])
    found = {"words": words, "scores": np.array([[-1.0, -2.0, -3.0]]), "attention": np.arange(3.0).reshape(1, 3, 1, 1)}
    ranked = rank_captions(found, biases_of({5: (0.5, 1), 6: (4.0, 1), 7: (2.5, 2)}))
    assert ranked["words"][0].tolist() == [[7, 2, 0], [4, 2, 0], [5, 6, 2]]
    assert ranked["scores"][0].tolist() == [-3.0, -1.0, -2.0]
    assert ranked["attention"].ravel().tolist() == [2, 0, 1]


def test_a_length_penalty_divides_scores_and_guidance() -> None:
    found = {"words": np.array([[[4, 2, 0, 0], [5, 5, 5, 2]]]), "scores": np.array([[-2.0, -3.0]])}
    for length_penalty, best in ((0.0, [4, 2, 0, 0]), (1.0, [5, 5, 5, 2])):
        assert rank_captions(found, biases_of({}), length_penalty)["words"][0, 0].tolist() == best


def test_captions_of_equal_rank_keep_their_order() -> None:
    found = {"words": np.array([[[4, 2], [5, 2]]]), "scores": np.array([[-1.0, -1.0]])}
    assert rank_captions(found, biases_of({}))["words"].tolist() == found["words"].tolist()


def test_a_mode_says_what_the_search_does() -> None:
    said = {mode.value: (mode.biases_words, mode.ranks_captions) for mode in GuideMode}
    assert said == {"off": (False, False), "rank": (False, True), "bias": (True, False), "both": (True, True)}
