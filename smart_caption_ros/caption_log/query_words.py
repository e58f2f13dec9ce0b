"""A person's words as an expression of SQLite's FTS5, which never is a syntax error."""

from __future__ import annotations

import re
from collections.abc import Callable

from smart_caption_ros.caption_log.errors import CaptionLogError

MAX_WORDS = 32
_PART = re.compile(r'"([^"]*)"?|(\S+)')


def expression_of(words: str, beginning: Callable[[str], str]) -> str:
    """Translate words that all have to occur; `"quoted words"` occur in this order, `cup*` begins a word.

    Args:
        words: what the person wrote.
        beginning: returns the expression for words that begin with a text.

    Returns:
        An expression for the columns with words; empty for an empty text.

    Raises:
        CaptionLogError: there is a text without any word in it, or there are too many words.
    """
    text = "".join(c if c.isprintable() else " " for c in words)
    phrases = []
    for quoted, word in _PART.findall(text):
        content = quoted or word.replace('"', " ").rstrip("*")
        if any(c.isalnum() for c in content):  # FTS5 would find nothing for a phrase without words
            phrases.append(beginning(content) if word.endswith("*") else f'"{content}"')
    if words.strip() and not phrases:
        raise CaptionLogError(f"there is no word in the search {words.strip()!r}: give words such as red cup")
    if len(phrases) > MAX_WORDS:
        raise CaptionLogError(f"a search has at most {MAX_WORDS} words, not {len(phrases)}")
    return f"{{text things}} : ({' AND '.join(phrases)})" if phrases else ""
