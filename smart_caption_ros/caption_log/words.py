"""Words for the full-text index: scripts without spaces, prefixes of words, and the marks of what was found."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from smart_caption_ros.caption_log.schema import CaptionLogError

MAX_WORDS = 32
MARKS = ("\x01", "\x02")
"""Characters around what FTS5's `highlight` found; texts of the log have no control characters."""

_BREAK = "\u200b"  # ZERO WIDTH SPACE, Unicode's word boundary in scripts without spaces
# Thai, Lao, Burmese, Khmer, Japanese, Chinese; and Korean, whose particles follow their words without a space.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_PART = re.compile(r'"([^"]*)"?|(\S+)')
_WORD = re.compile(r"[^\W_]+")


def with_breaks(text: str) -> str:
    """Insert breaks between the letters of scripts that write words without spaces.

    FTS5 takes a run of letters for one word. With breaks, each letter is a word, and a search for a word of such a
    script is a search for its letters side by side.
    """
    if not _UNSPACED.search(text):
        return text
    pieces: list[str] = []
    was_unspaced = False
    for character in text:
        is_mark = unicodedata.category(character).startswith("M")  # belongs to the letter before it
        is_unspaced = was_unspaced if is_mark else _UNSPACED.match(character) is not None
        if pieces and not is_mark and (is_unspaced or was_unspaced):
            pieces.append(_BREAK)
        pieces.append(character)
        was_unspaced = is_unspaced
    return "".join(pieces)


class SearchWords:
    """The words that a person looks for.

    Attributes:
        phrases: words that have to stand side by side, in any form; mostly a single word.
        beginnings: words that have to stand side by side; the last one is the beginning of a word.
    """

    def __init__(self, text: str) -> None:
        """
        Args:
            text: words; `"quoted words"` are side by side, `cup*` begins a word.

        Raises:
            CaptionLogError: a text that is not empty has no word, or there are too many words.
        """
        self.phrases: list[str] = []
        self.beginnings: list[tuple[str, ...]] = []
        for quoted, word in _PART.findall(text):
            content = quoted or word.replace('"', " ").rstrip("*")
            if word.endswith("*") and not _UNSPACED.search(content):
                if words := tuple(_WORD.findall(_folded(content))):
                    self.beginnings.append(words)
            elif any(map(str.isalnum, content)):  # FTS5 would find nothing for a phrase without words
                self.phrases.append(content)
        count = len(self.phrases) + len(self.beginnings)
        if text.strip() and not count:
            raise CaptionLogError(f"there is no word in the search {text.strip()!r}: give words such as red cup")
        if count > MAX_WORDS:
            raise CaptionLogError(f"a search has at most {MAX_WORDS} words, not {count}")

    def expressions(self, *, side_by_side: bool = False) -> list[str]:
        """Return FTS5 expressions, all of which have to match; none of them can be a syntax error.

        The expressions of beginnings match too much, so that :func:`begins` has to hold as well: the index holds stems,
        such as "plai" for "play", which have the first two letters of their words, or one before a y.

        Args:
            side_by_side: whether each pair of neighbouring words also counts as a phrase, which raises the rank of the
                rows that have it, and finds no others.
        """
        found = [quoted(phrase) for phrase in self.phrases]
        for place, (one, other) in enumerate(pairwise(self.phrases) if side_by_side else ()):
            found[place] = f"({quoted(one)} OR {quoted(f'{one} {other}')})"
        for *before, last in self.beginnings:
            found.append(f"{quoted(' '.join([*before, last[: 1 if last[1:2] == 'y' else 2]]))} *")
        return [f"{{text search_terms}} : {match}" for match in found]

    def mark_beginnings(self, text: str, is_marked: list[bool]) -> None:
        """Mark the characters of a text that match a beginning."""
        for words in self.beginnings:
            for start, end in _beginnings_in(text, words):
                is_marked[start:end] = [True] * (end - start)


def begins(text: str, words: str) -> bool:
    """Return whether a text has these words side by side, the last one as the beginning of a word.

    Args:
        words: an item of :attr:`SearchWords.beginnings`, joined by spaces.
    """
    return next(_beginnings_in(text, tuple(words.split())), None) is not None


def quoted(text: str) -> str:
    """Return a text as a phrase of FTS5; a space replaces a null character, at which FTS5 would stop."""
    return '"{}"'.format("".join(c if c.isprintable() else " " for c in with_breaks(text)).replace('"', '""'))


def marked_characters(text: str, highlighted: str) -> list[bool]:
    """Return which characters of a text FTS5 found.

    Args:
        highlighted: result of `highlight` for the text, with breaks and :data:`MARKS`; empty if it was not called.
    """
    is_marked = [False] * len(text)
    place, is_found = 0, False
    for character in highlighted:
        if character in MARKS:
            is_found = character == MARKS[0]
        elif place < len(text) and character == text[place]:  # else a break
            is_marked[place] = is_found
            place += 1
    return is_marked


def _beginnings_in(text: str, words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each place where the words stand side by side, the last one as the beginning of a word."""
    spans = [match.span() for match in _WORD.finditer(text)]
    found = [_folded(text[start:end]) for start, end in spans]
    for first in range(len(found) - len(words) + 1):
        *before, last = found[first : first + len(words)]
        if last.startswith(words[-1]) and tuple(before) == words[:-1]:
            yield spans[first][0], spans[first + len(words) - 1][1]


def _folded(text: str) -> str:
    """Return a text in lower case and without accents, as in the index."""
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
