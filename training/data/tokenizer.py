"""Captions to words, and words to a vocabulary, by the rules of published captioners."""

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
    """M2's words: spaCy's English tokeniser, lower case; tokens without a letter or digit are punctuation, dropped."""
    tokens = (token.text.strip() for token in _tokeniser().make_doc(caption.lower()))
    return [token for token in tokens if _HAS_WORD_CHARACTER.search(token)]


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def split_at_spaces(caption: str) -> list[str]:
    """X-LAN's words, those of Karpathy's preparation: lower case, punctuation characters deleted, split at spaces."""
    return caption.lower().translate(_NO_PUNCTUATION).split()


@dataclass(frozen=True)
class VocabularyRule:
    """How a published captioner makes words of captions."""

    words: Callable[[str], list[str]]
    minimum_count: int
    """Words seen less often are unknown."""


RULES = {
    "m2": VocabularyRule(tokenize, 5),  # supplement of M2; the paper of SMArT builds on it
    "x_lan": VocabularyRule(split_at_spaces, 6),  # X-LAN, Sec. 4.1
}


def build_vocabulary(captions: Iterable[list[str]], minimum_count: int) -> Vocabulary:
    """Words that occur ``minimum_count`` times at least, most frequent first (ties by spelling)."""
    counts = Counter(word for caption in captions for word in caption)
    kept = sorted((word for word, n in counts.items() if n >= minimum_count), key=lambda w: (-counts[w], w))
    return Vocabulary((*SPECIAL, *kept))
