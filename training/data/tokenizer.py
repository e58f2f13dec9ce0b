"""Captions to words by M2's rule: spaCy's English tokeniser, lower case, punctuation removed."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

import spacy
from spacy.language import Language

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary

_HAS_WORD_CHARACTER = re.compile(r"[a-z0-9]")


@cache
def _tokeniser() -> Language:
    return spacy.blank("en")


def tokenize(caption: str) -> list[str]:
    """Lower-cased words of a caption; tokens without a letter or digit are punctuation and dropped."""
    tokens = (token.text.strip() for token in _tokeniser().make_doc(caption.lower()))
    return [token for token in tokens if _HAS_WORD_CHARACTER.search(token)]


def build_vocabulary(captions: Iterable[list[str]], minimum_count: int) -> Vocabulary:
    """Words that occur ``minimum_count`` times at least, most frequent first (ties by spelling)."""
    counts = Counter(word for caption in captions for word in caption)
    kept = sorted((word for word, n in counts.items() if n >= minimum_count), key=lambda w: (-counts[w], w))
    return Vocabulary((*SPECIAL, *kept))
