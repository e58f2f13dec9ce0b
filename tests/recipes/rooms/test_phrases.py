"""Articles of noun phrases."""

from recipes.rooms.phrases import with_article


def test_articles_follow_the_noun() -> None:
    assert with_article("oven") == "an oven"
    assert with_article("books") == "books"
    assert with_article("roll of paper") == "a roll of paper"
    assert with_article("scissors") == "a pair of scissors"
