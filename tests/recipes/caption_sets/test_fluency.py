"""Sentences are judged by the pairs of words that people wrote."""

import pytest

from recipes.caption_sets.fluency import Fluency

FLUENCY = Fluency(
    map(
        str.split,
        [
            "a lamp on the counter",
            "a cup on the counter next to a river",
            "a dog on a bed",
            "next to a small river bank",
        ],
    )
)


@pytest.mark.parametrize(
    ("sentence", "well"),
    [
        ("a lamp on the counter", True),
        ("a lamp on a bed", True),
        ("a lamp on", False),  # nobody ends so
        ("lamp on the counter", False),  # nor begins so
        ("a counter on the lamp", False),
    ],
)
def test_every_pair_of_words_must_have_been_written(sentence: str, well: bool) -> None:
    assert FLUENCY.reads_well(sentence.split()) == well


def test_captions_may_be_added() -> None:
    fluency = Fluency([["a", "dog"]])
    assert not fluency.reads_well(["a", "cat"])
    fluency.add([["a", "cat"]])
    assert fluency.reads_well(["a", "cat"])
    assert fluency.reads_well(["a", "dog"])


def test_the_article_is_the_usual_one() -> None:
    assert FLUENCY.with_usual_article("on", "a counter") == "the counter"
    assert FLUENCY.with_usual_article("on", "a bed") == "a bed"
    assert FLUENCY.with_usual_article("on", "two beds") == "two beds"
    words = ["a", "bench", "next", "to", "the", "small", "river", "bank"]
    assert FLUENCY.with_usual_articles(words) == ["a", "bench", "next", "to", "a", "small", "river", "bank"]
    assert FLUENCY.with_usual_articles(["a", "cup", "on", "the", "counter"]) == ["a", "cup", "on", "the", "counter"]
