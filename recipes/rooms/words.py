"""Words and phrases of captions: numerals, articles, cleaning, known words, and dropping of repetitions."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from training.data.inflection import is_plural, with_indefinite_article
from training.data.tokenizer import tokenize


def read_table(name: str) -> dict[str, str]:
    """Read a table beside this module: lines of a name, a colon and a value; lines with ``#`` are comments."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    entries = (line.partition(":") for line in lines if not line.startswith("#"))
    return {key: value.strip() for key, _, value in entries}


def words_in(text: str) -> list[str]:
    """Split a text at white space."""
    return text.split()


NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Words for the numbers from 0."""


def join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases to a list: ``a``, ``a and b``, ``a, b and c``."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


COLOURS = frozenset(
    words_in(
        """
    white black gray grey brown red green blue yellow orange pink purple beige tan cream gold silver
    """
    )
)
PICTURE_OF = re.compile(
    r"^(?:this is |here is |there is )?(?:an? )?(?:black and white )?(?:close up |close-up )?"
    r"(?:photo|picture|image|view|shot)(?: is)? of (?=an? |the )"
)
"""Openings such as ``a photo of`` that say nothing about the photograph."""
_UNCOUNTABLE = frozenset(
    words_in(
        """
    paper soap tissue clothing furniture toiletries food laundry people bedding jewelry luggage water wood
    equipment fruit bread silverware
    """
    )
)
_PAIRS = frozenset({"scissors", "trousers", "pants"})
_FUNCTION_WORDS = frozenset({"a", "an", "the", "of", "in", "on", "with", "and", "to", "at", "is", "are"})


def with_article(phrase: str) -> str:
    """Prefix ``a`` or ``an``: ``a lamp``, ``an oven``; plurals and uncountable nouns stay as they are."""
    head = phrase.split(" of ")[0]
    last = head.split()[-1]
    if last in _PAIRS:
        return f"a pair of {phrase}"
    return phrase if is_plural(head) or last in _UNCOUNTABLE else with_indefinite_article(phrase)


def plain(sentence: str) -> str:
    """Normalise a sentence: lower case, single spaces, a space after each comma, no punctuation at either end."""
    text = re.sub(r"\s+", " ", sentence.lower().replace("\u2019", "'").replace('"', "")).strip()
    text = re.sub(r"\s*,\s*", ", ", text)
    return text.strip(" .,;:!-")


def word_count(sentence: str) -> int:
    """Count words as the captioner's tokenizer does."""
    return len(tokenize(sentence))


def frequent_words(texts: Iterable[str], minimum: int) -> frozenset[str]:
    """Find the words that occur at least ``minimum`` times in texts."""
    counts = Counter(word for text in texts for word in tokenize(text))
    return frozenset(word for word, count in counts.items() if count >= minimum)


def all_known(text: str, known: Collection[str]) -> bool:
    """Return whether all words of a text are among the known ones."""
    return all(word in known for word in tokenize(text))


def without_repetitions(sentences: Iterable[str], overlap: float = 0.75) -> list[str]:
    """Drop every sentence that shares at least the fraction ``overlap`` of its words with an earlier one.

    Function words do not count; the fraction is intersection over union.
    """
    kept: list[tuple[str, frozenset[str]]] = []
    for sentence in sentences:
        words = frozenset(tokenize(sentence)) - _FUNCTION_WORDS
        if all(len(words & other) / max(len(words | other), 1) < overlap for _, other in kept):
            kept.append((sentence, words))
    return [sentence for sentence, _ in kept]
