"""Texts whose meaning is new: for a speech synthesiser and a log, which should not repeat the same."""

from collections.abc import Iterable


class TextFilter:
    """Compares each text with the last one that was new. It is not thread-safe.

    The meaning of a text is the set of its nouns in their dictionary forms, or its words where it has none or noun
    coverage is off.

    Args:
        quiet_s: minimum time before the same meaning is new again, seconds, so that a caption that flickers between
            two meanings is not repeated.
    """

    def __init__(self, quiet_s: float = 0.0) -> None:
        self._quiet_s = quiet_s
        self._last: frozenset[str] = frozenset()
        self._new_at_s: dict[frozenset[str], float] = {}

    def is_new(self, text: str, lemmas: Iterable[str], time_s: float = 0.0) -> bool:
        """Return whether a text has another meaning than the last one that was new.

        Args:
            time_s: when it was said, by any clock; matters with a quiet time.
        """
        meaning = frozenset(lemmas) or frozenset(text.split())
        recent = {other: new_s for other, new_s in self._new_at_s.items() if 0 <= time_s - new_s < self._quiet_s}
        if meaning == self._last or meaning in recent:
            return False
        self._last, self._new_at_s = meaning, {**recent, meaning: time_s}
        return True

    def forget(self) -> None:
        """Take the next text for new."""
        self._new_at_s.pop(self._last, None)
        self._last = frozenset()
