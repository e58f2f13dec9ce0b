"""Singular, plural and article of the nouns that captions have."""

import pytest

from training.data.inflection import is_plural, plural, singular


@pytest.mark.parametrize(("one", "many"), [("knife", "knives"), ("wine glass", "wine glasses"), ("person", "people")])
def test_plural_and_singular_are_inverse(one, many):
    assert (plural(one), singular(many)) == (many, one)
    assert is_plural(many)
    assert not is_plural(one)


@pytest.mark.parametrize("noun", ["bus", "gas", "canvas", "furniture", "dress", "sheep", "wine glass", "scissors"])
def test_singulars_stay_as_they_are(noun):
    assert singular(noun) == noun
    assert not is_plural(noun)
