"""Whether a sentence reads like people's captions: by the pairs and triples of words that occur in them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from training.data.inflection import with_indefinite_article

BEGIN, END = "<s>", "</s>"
MIN_PAIRS = 1
"""How often people must have written two words one after the other."""


class Fluency:
    """Pairs and triples of words in people's captions."""

    def __init__(self, captions: Iterable[Sequence[str]]) -> None:
        """Count pairs and triples.

        Args:
            captions: words of each caption, as :func:`training.data.tokenizer.tokenize` returns them.
        """
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._triples: Counter[tuple[str, str, str]] = Counter()
        self.add(captions)

    def add(self, captions: Iterable[Sequence[str]]) -> None:
        """Count the pairs and triples of further captions."""
        for caption in captions:
            words = (BEGIN, *caption, END)
            self._pairs.update(pairwise(words))
            self._triples.update(zip(words, words[1:], words[2:], strict=False))

    def reads_well(self, words: Sequence[str]) -> bool:
        """Return whether people have written every two words of a caption one after the other."""
        return all(self._pairs[pair] >= MIN_PAIRS for pair in pairwise((BEGIN, *words, END)))

    def with_usual_articles(self, words: Sequence[str]) -> list[str]:
        """Replace each ``the`` by ``a`` or ``an`` where people write that more often between the same two words.

        Questions say ``the`` of things that a caption mentions first: "next to the small river".
        """
        changed = [*words, END]
        for place, (word, after, second) in enumerate(zip(words, changed[1:], changed[2:], strict=False)):
            if word == "the" and place and second != "of":
                before, article = changed[place - 1], with_indefinite_article(after).split(" ", 1)[0]
                more = self._triples[before, article, after] > self._triples[before, "the", after]
                if more and self._triples[article, after, second]:
                    changed[place] = article
        return changed[:-1]

    def with_usual_article(self, preposition: str, place: str) -> str:
        """Write a place with ``the`` where people do: ``on the counter``, but ``on a bed``.

        Args:
            preposition: before the place; its last word counts.
            place: noun phrase with ``a``, ``an`` or ``the``, or without article, which stays as it is.
        """
        article, _, noun = place.partition(" ")
        if article not in ("a", "an"):
            return place
        before, head = preposition.split()[-1], noun.split()[0]
        definite = self._triples[before, "the", head] > self._triples[before, article, head]
        return f"the {noun}" if definite and " " not in noun else place
