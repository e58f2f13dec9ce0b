"""Tokenisation of captions and construction of vocabularies by the rules of published captioners."""

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain

import regex
import spacy
from spacy.language import Language

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary

_HAS_WORD_CHARACTER = re.compile(r"[^\W_]")
"""A letter or digit of any script."""


@cache
def _tokeniser() -> Language:
    return spacy.blank("en")


def tokenize(caption: str) -> list[str]:
    """Split a caption as M2 does: spaCy's English tokeniser, lower case, without tokens of punctuation."""
    return list(chain.from_iterable(map(_tokenize_chunk, caption.lower().split())))


# spaCy splits at white space and then splits each chunk by itself, and a data set has few distinct chunks.
@lru_cache(maxsize=1 << 17)
def _tokenize_chunk(chunk: str) -> tuple[str, ...]:
    """Split a part of a caption that has no white space."""
    return tuple(token.text for token in _tokeniser().make_doc(chunk) if _HAS_WORD_CHARACTER.search(token.text))


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def split_at_spaces(caption: str) -> list[str]:
    """Split a caption as X-LAN and Karpathy do: lower case, punctuation characters deleted, split at spaces."""
    return caption.lower().translate(_NO_PUNCTUATION).split()


_WORD_BOUNDARY = regex.compile(r"(?V1w)\b")


def split_by_unicode(caption: str) -> list[str]:
    """Split at the word boundaries of Unicode (UAX #29), lower case, composed letters, without punctuation.

    Scripts without spaces, such as Chinese and Thai, are split into their characters.
    """
    parts = _WORD_BOUNDARY.split(unicodedata.normalize("NFC", caption.lower()))
    return [part for part in parts if _HAS_WORD_CHARACTER.search(part)]


def script_of(word: str) -> str:
    """Name the script of a word's first letter that is not Latin, e.g. "cyrillic"; "latin" if there is none."""
    names = (unicodedata.name(letter, "unknown").split()[0].lower() for letter in word if letter.isalpha())
    return next((name for name in names if name not in ("latin", "feminine", "masculine")), "latin")


@dataclass(frozen=True)
class VocabularyRule:
    """The tokenisation and vocabulary of a published captioner."""

    words: Callable[[str], list[str]]
    minimum_count: int
    """Words that occur less often are unknown."""


RULES = {
    # Supplement of M2; the paper of SMArT builds on it.
    "spacy": VocabularyRule(tokenize, 5),
    "spaces": VocabularyRule(split_at_spaces, 6),  # X-LAN, Sec. 4.1
    "unicode": VocabularyRule(split_by_unicode, 5),
}


def build_vocabulary(counts: Mapping[str, int], minimum_count: int, required: Iterable[str] = ()) -> Vocabulary:
    """Collect the words that occur ``minimum_count`` times or more, by descending frequency, ties by spelling.
    ``required``: words that are never left out.
    """
    kept = {word for word, n in counts.items() if n >= minimum_count} | set(required)
    return Vocabulary((*SPECIAL, *sorted(kept, key=lambda word: (-counts.get(word, 0), word))))
