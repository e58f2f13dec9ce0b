"""Tokenisation of captions and construction of vocabularies by the rules of published captioners."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import spacy
from spacy.language import Language

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary

_HAS_WORD_CHARACTER = re.compile(r"[a-z0-9]")


@cache
def _tokeniser() -> Language:
    return spacy.blank("en")


def tokenize(caption: str) -> list[str]:
    """Split a caption as M2 does: spaCy's English tokeniser, lower case, without tokens of punctuation."""
    tokens = (token.text.strip() for token in _tokeniser().make_doc(caption.lower()))
    return [token for token in tokens if _HAS_WORD_CHARACTER.search(token)]


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def split_at_spaces(caption: str) -> list[str]:
    """Split a caption as X-LAN and Karpathy do: lower case, punctuation characters deleted, split at spaces."""
    return caption.lower().translate(_NO_PUNCTUATION).split()


@dataclass(frozen=True)
class VocabularyRule:
    """The tokenisation and vocabulary of a published captioner."""

    words: Callable[[str], list[str]]
    minimum_count: int
    """Words that occur less often are unknown."""


RULES = {
    "m2": VocabularyRule(tokenize, 5),  # supplement of M2; the paper of SMArT builds on it
    "x_lan": VocabularyRule(split_at_spaces, 6),  # X-LAN, Sec. 4.1
}


def build_vocabulary(captions: Iterable[list[str]], minimum_count: int) -> Vocabulary:
    """Collect the words that occur ``minimum_count`` times or more, by descending frequency, ties by spelling."""
    counts = Counter(word for caption in captions for word in caption)
    kept = sorted((word for word, n in counts.items() if n >= minimum_count), key=lambda w: (-counts[w], w))
    return Vocabulary((*SPECIAL, *kept))
