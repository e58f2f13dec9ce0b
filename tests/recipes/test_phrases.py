"""Phrases of captions."""

import pytest

from recipes.phrases import join_phrases


@pytest.mark.parametrize(
    ("phrases", "joined"),
    [(["a bed"], "a bed"), (["a bed", "a lamp"], "a bed and a lamp"), (["a", "b", "c"], "a, b and c")],
)
def test_phrases_are_joined_by_commas_and_a_last_and(phrases: list[str], joined: str) -> None:
    assert join_phrases(phrases) == joined
