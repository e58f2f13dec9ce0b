"""The words of a log that begin with some letters.

FTS5 finds the beginning of a word by merging the rows of all words that begin so, which takes longer the larger the log
is. Named one by one, they are read from the newest row backwards as any other words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.schema import TOKENIZER, WORD_TOKENIZER

MAX_WORDS = 64

_AFTER = "\x01"  # the smallest character that can follow a word

_TABLES = (
    "CREATE VIRTUAL TABLE temp.log_words USING fts5vocab('main', 'caption_search', 'instance')",
    f"CREATE VIRTUAL TABLE temp.log_stem USING fts5(word, tokenize='{TOKENIZER}')",
    "CREATE VIRTUAL TABLE temp.log_stem_words USING fts5vocab('temp', 'log_stem', 'instance')",
    f"CREATE VIRTUAL TABLE temp.log_plain USING fts5(word, tokenize='{WORD_TOKENIZER}')",
    "CREATE VIRTUAL TABLE temp.log_plain_words USING fts5vocab('temp', 'log_plain', 'instance')",
)


class WordBeginnings:
    """Looks words up in the index of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._is_prepared = False

    def expression(self, beginning: str) -> str:
        """Return an expression of FTS5 for the words that begin with a text.

        Args:
            beginning: a text without quotes.

        Raises:
            CaptionLogError: more than :data:`MAX_WORDS` words begin so.
            sqlite3.Error: the log cannot be read.
        """
        if not self._is_prepared:
            for statement in _TABLES:
                self._connection.execute(statement)
            self._is_prepared = True
        (tokens,) = self._tokens("plain", [beginning])
        if len(tokens) != 1:
            return f'"{beginning}"*'
        words = self._words(tokens[0])
        # A stem that has another stem is not found by its name, but by its beginning, which few words share.
        stems = self._tokens("stem", words)
        parts = [f'"{word}"' if [word] == stem else f'"{word}"*' for word, stem in zip(words, stems, strict=True)]
        # The index has stems: "play" and "playing" are there as "plai", which does not begin with "play".
        return " OR ".join([f'("{beginning}"', *parts]) + ")"

    def _words(self, beginning: str) -> list[str]:
        """Return the words of the index that begin so."""
        words: list[str] = []
        lowest = beginning
        while len(words) <= MAX_WORDS:
            # The next word is a seek; a range of words would read all rows of each.
            query = "SELECT term FROM temp.log_words WHERE term >= ? LIMIT 1"
            found = self._connection.execute(query, (lowest,)).fetchone()
            if found is None or not found[0].startswith(beginning):
                return words
            words.append(found[0])
            lowest = found[0] + _AFTER
        raise CaptionLogError(f"more than {MAX_WORDS} words of the log begin with {beginning!r}: give more letters")

    def _tokens(self, tokenizer: str, texts: Sequence[str]) -> list[list[str]]:
        """Return what a tokenizer, "plain" or "stem", makes of texts."""
        self._connection.execute(f"DELETE FROM temp.log_{tokenizer}")
        self._connection.executemany(f"INSERT INTO temp.log_{tokenizer}(rowid, word) VALUES (?, ?)", enumerate(texts))
        tokens: list[list[str]] = [[] for _ in texts]
        query = f"SELECT term, doc FROM temp.log_{tokenizer}_words ORDER BY doc, offset"
        for token, number in self._connection.execute(query):
            tokens[number].append(token)
        return tokens
