"""Texts whose meaning is new: for a speech synthesiser and a log, which should not repeat the same."""

from __future__ import annotations

from collections.abc import Iterable


class TextFilter:
    """Compares each text with the one before. It is not thread-safe.

    The meaning of a text is the set of its nouns in their dictionary forms, or its words where it has none or noun
    coverage is off.
    """

    def __init__(self) -> None:
        self._last: frozenset[str] = frozenset()

    def is_new(self, text: str, lemmas: Iterable[str]) -> bool:
        """Return whether a text has another meaning than that of the call before.

        Args:
            text: the text.
            lemmas: its nouns in their dictionary forms; empty where they are unknown.
        """
        meaning = frozenset(lemmas) or frozenset(text.split())
        is_new, self._last = meaning != self._last, meaning
        return is_new

    def forget(self) -> None:
        """Take the next text for new."""
        self._last = frozenset()
