"""Captions against classes: the worked example of docs/coverage.md, the edges, the options."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.grounding import CoverageError, CoverageOptions, NounCoverage
from tests.grounding.conftest import EXAMPLE_VECTORS

ROOT = Path(__file__).resolve().parents[2]
CAPTION, CLASSES = "a cup on a table near a sofa", ["cup", "couch", "dining table", "laptop"]


def test_the_worked_example_of_the_documentation(example_vectors):
    result = NounCoverage.load(word_vectors=example_vectors).score(CAPTION, CLASSES)
    assert [(match.class_name, match.noun.text) for match in result.matches] == [
        ("cup", "cup"),
        ("couch", "sofa"),
        ("dining table", "table"),
    ]
    assert [match.similarity for match in result.matches] == pytest.approx([1, 0.96, 0.96])
    assert result.coverage == pytest.approx((1 + 0.96 + 0.96) / 4)
    assert result.noun_support == 1
    assert result.missed_classes == ("laptop",)
    page = (ROOT / "docs" / "coverage.md").read_text()
    assert EXAMPLE_VECTORS in page
    assert CAPTION in page
    assert "(1 + 0.96 + 0.96) / 4 = 0.73" in page


def test_without_objects_coverage_is_undefined_and_nothing_supports_a_noun(coverage):
    result = coverage.score("a cat", [])
    assert (result.coverage, result.noun_support) == (None, 0)
    assert result.unsupported_nouns == ("cat",)


def test_repeated_nouns_and_classes_count_once(coverage):
    once = coverage.score("a dog near a bowl", ["dog", "chair"])
    often = coverage.score("a dog and dogs near a bowl and a dog", ["dog", "chair", "dog", "DOG"])
    assert often.coverage == once.coverage
    assert often.noun_support == once.noun_support
    assert often.classes == ("dog", "chair")
    assert len(often.nouns) == 4


def test_class_counts_ask_for_a_noun_for_every_object(coverage):
    counting = NounCoverage(coverage.finder, coverage.vectors, CoverageOptions(class_counts=True))
    assert counting.score("a dog", ["dog", "dog"]).coverage == 0.5
    assert counting.score("a dog and another dog", ["dog", "dog"]).coverage == 1
    assert [match.class_index for match in counting.score("a dog and a dog", ["dog", "dog"]).matches] == [0, 1]


def test_a_word_without_vector_matches_by_lemma_alone_and_is_counted(coverage):
    assert coverage.vectors.mean(["giraffe"]) is None
    result = coverage.score("two giraffes near a tree", ["giraffe"])
    assert result.coverage == 1
    assert result.out_of_vocabulary_nouns == ("giraffe",)
    assert result.out_of_vocabulary_classes == ("giraffe",)
    assert coverage.score("two giraffes", ["horse"]).coverage == 0


def test_synonyms_count_as_the_class_where_they_are_asked_for(example_vectors, tmp_path):
    (tmp_path / "synonyms.txt").write_text("couch, sofa, settee \ndining table,table, desk\n")
    options = CoverageOptions(synonyms=True)
    loaded = NounCoverage.load(word_vectors=example_vectors, synonyms=tmp_path / "synonyms.txt", options=options)
    result = loaded.score(CAPTION, CLASSES)
    assert [match.similarity for match in result.matches] == [1, 1, 1]
    assert loaded.score("a settee", ["couch"]).coverage == 1
    without = NounCoverage.load(word_vectors=example_vectors, synonyms=tmp_path / "synonyms.txt")
    assert without.score("a settee", ["couch"]).coverage == 0


def test_synonyms_without_a_list_and_lists_that_are_none_are_refused(tmp_path):
    with pytest.raises(CoverageError, match="no list of them was given"):
        NounCoverage.load(options=CoverageOptions(synonyms=True))
    (tmp_path / "notes.txt").write_text("nothing of that kind\n")
    with pytest.raises(CoverageError, match="is no list of synonyms"):
        NounCoverage.load(synonyms=tmp_path / "notes.txt")
    with pytest.raises(CoverageError, match=r"nowhere\.txt: the list of synonyms cannot be read"):
        NounCoverage.load(synonyms=tmp_path / "nowhere.txt")


WORDS = ["dog", "dogs", "cup", "table", "dining table", "couch", "giraffe", "red", "runs", "on", "the", "front"]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(WORDS), max_size=8), st.lists(st.sampled_from(WORDS), max_size=6))
def test_scores_keep_to_their_ranges_and_add_up(coverage, words, classes):
    result = coverage.score(" ".join(words), classes)
    distinct = {noun.lemma for noun in result.nouns}
    assert (result.coverage is None) == (not classes)
    assert (result.noun_support is None) == (not distinct)
    if result.coverage is not None:
        assert 0 <= result.coverage <= 1
        total = sum(match.similarity for match in result.matches)
        assert result.coverage == pytest.approx(total / len(set(classes)), abs=1e-6)
    if result.noun_support is not None:
        assert result.noun_support == pytest.approx(1 - len(result.unsupported_nouns) / len(distinct))
    json.dumps(result.to_json(), allow_nan=False)
