"""Articles, lists and known words."""

import pytest

from recipes.rooms.words import join_phrases, with_article


def test_articles_follow_the_noun() -> None:
    assert with_article("oven") == "an oven"
    assert with_article("books") == "books"
    assert with_article("roll of paper") == "a roll of paper"
    assert with_article("scissors") == "a pair of scissors"


@pytest.mark.parametrize(
    ("phrases", "joined"),
    [(["a bed"], "a bed"), (["a bed", "a lamp"], "a bed and a lamp"), (["a", "b", "c"], "a, b and c")],
)
def test_phrases_are_joined_by_commas_and_a_last_and(phrases: list[str], joined: str) -> None:
    assert join_phrases(phrases) == joined
