"""Texts whose meaning is new: for a speech synthesiser, which should not say the same again and again."""

from __future__ import annotations

from smart_caption_ros.nodes.answering import ImageAnswer


class TextFilter:
    """Compares each text with the one before. It is not thread-safe.

    The meaning of a text is the set of its nouns in their dictionary forms, or its words where it has none or noun
    coverage is off.
    """

    def __init__(self) -> None:
        self._last: frozenset[str] = frozenset()

    def is_new(self, answer: ImageAnswer) -> bool:
        """Return whether the text of an answer has another meaning than that of the call before."""
        grounding = answer.evidence.grounding if answer.evidence is not None else None
        nouns = grounding.nouns if grounding is not None else ()
        meaning = frozenset(noun.lemma for noun in nouns) or frozenset(answer.message.text.split())
        is_new, self._last = meaning != self._last, meaning
        return is_new

    def forget(self) -> None:
        """Take the next text for new."""
        self._last = frozenset()
