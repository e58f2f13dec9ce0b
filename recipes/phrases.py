"""Phrases that the captions of rendered and of real rooms have in common."""

from collections.abc import Sequence

NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Words for the numbers from 0."""


def join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases to a list: ``a``, ``a and b``, ``a, b and c``."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
