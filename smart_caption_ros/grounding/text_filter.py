"""Filter texts for a speech synthesiser or a log, which should not repeat the same meaning."""

from collections.abc import Iterable


class TextFilter:
    """Decides which texts have a new meaning. Not thread-safe.

    The meaning of a text is the set of its nouns in their dictionary forms, or the set of its words if it has no nouns
    or noun coverage is off.

    Args:
        quiet_s: minimum time before the same meaning is new again, seconds, so that captions that alternate between
            two meanings are not repeated.
    """

    def __init__(self, quiet_s: float = 0.0) -> None:
        self._quiet_s = quiet_s
        self._last: frozenset[str] = frozenset()
        self._new_at_s: dict[frozenset[str], float] = {}

    def is_new(self, text: str, lemmas: Iterable[str], time_s: float = 0.0) -> bool:
        """Return whether a text has another meaning than the last one that was new.

        Args:
            time_s: time of the text, by any clock; used only with a quiet time.
        """
        meaning = frozenset(lemmas) or frozenset(text.split())
        recent = {other: new_s for other, new_s in self._new_at_s.items() if 0 <= time_s - new_s < self._quiet_s}
        if meaning == self._last or meaning in recent:
            return False
        self._last, self._new_at_s = meaning, {**recent, meaning: time_s}
        return True

    def forget(self) -> None:
        """Treat the next text as new, whatever its meaning."""
        self._new_at_s.pop(self._last, None)
        self._last = frozenset()
