"""The vocabulary of a captioner, and how its words are joined to a sentence."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

PADDING, BEGIN, END, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIAL = (PADDING, BEGIN, END, UNKNOWN)
# Tokenisers split off clitics ("man's" -> "man 's"); a sentence joins them again.
_CLITICS = frozenset({"'s", "'re", "'ve", "'ll", "'d", "'m", "n't", "'"})
_CLEANED_UP = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")
"""Texts from which `clean_up_tokenization` of transformers removes the space, in its order."""
_NAMED_BYTES = re.compile(r"(?:<0x(?:[0-9A-F]{2})*(?:#\d+)?>)+")


def byte_name(content: bytes, number: int | None = None) -> str:
    """Return the spelling of a piece that a line of the vocabulary cannot hold: bytes that are not UTF-8 by themselves,
    white space, or no text at all. ``number`` distinguishes several pieces without text.
    """
    return f"<0x{content.hex().upper()}{'' if number is None else f'#{number}'}>"


@dataclass(frozen=True)
class Vocabulary:
    """Words by id, or pieces of words; ids 0 to 3 are padding, begin, end and unknown.

    Raises:
        ValueError: the special words are not the first words, or a word occurs twice or is empty.
    """

    words: tuple[str, ...]
    continuation: str = ""
    """Prefix of the pieces that continue the word of the piece before them; empty where all are whole words."""
    attachment: str = ""
    """Prefix of the pieces of a published vocabulary that are words of their own with no space before them, such as a
    comma; empty where clitics alone are attached (:func:`join_words`)."""
    clean_up: bool = False
    """Whether spaces before punctuation are removed from sentences, as by `clean_up_tokenization` of transformers."""

    padding_id = 0
    begin_id = 1
    end_id = 2
    unknown_id = 3

    def __post_init__(self) -> None:
        if self.words[: len(SPECIAL)] != SPECIAL:
            raise ValueError(f"a vocabulary begins with {', '.join(SPECIAL)}, not {', '.join(self.words[:4])}")
        if len(set(self.words)) != len(self.words):
            raise ValueError("a word stands twice in the vocabulary")
        if not all(word and not any(c.isspace() for c in word) for word in self.words):
            raise ValueError("a word of the vocabulary is empty or holds a space")
        object.__setattr__(self, "_ids", {word: index for index, word in enumerate(self.words)})

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], continuation: str = "", attachment: str = "", clean_up: bool = False
    ) -> "Vocabulary":
        """Read a file with one word or piece a line, UTF-8; the line number, from 0, is the id."""
        lines = Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return cls(tuple(lines), continuation, attachment, clean_up)

    @property
    def joining(self) -> dict[str, Any]:
        """The options that say how pieces are joined to words and sentences, as JSON values."""
        return {"continuation": self.continuation, "attachment": self.attachment, "clean_up": self.clean_up}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file for :meth:`load`."""
        Path(path).write_text("".join(f"{word}\n" for word in self.words), encoding="utf-8")

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Look up the ids of words; unknown words have the unknown id, and no begin or end id is added."""
        ids: dict[str, int] = self._ids  # type: ignore[attr-defined]
        return [ids.get(word, self.unknown_id) for word in words]

    def continues(self, index: int) -> bool:
        """Return whether an id is a piece that continues a word."""
        return bool(self.continuation) and index >= len(SPECIAL) and self.words[index].startswith(self.continuation)

    def is_attached(self, index: int) -> bool:
        """Return whether an id is a word of its own with no space before it."""
        return bool(self.attachment) and index >= len(SPECIAL) and self.words[index].startswith(self.attachment)

    def split(self, word: str) -> list[int]:
        """Split a word, as WordPiece does, into the longest piece that begins words, the longest that continues it, and
        so on. Returns the ids of the pieces; empty if no pieces spell the word.
        """
        ids: dict[str, int] = self._ids  # type: ignore[attr-defined]
        pieces: list[int] = []
        while word:
            prefix = self.continuation if pieces else ""
            end = next((end for end in range(len(word), 0, -1) if prefix + word[:end] in ids), 0)
            if not end or (pieces and not prefix):
                return []
            pieces.append(ids[prefix + word[:end]])
            word = word[end:]
        return pieces

    def word_places(self, ids: Iterable[int]) -> list[list[int]]:
        """Find the positions in ``ids`` of the pieces of each word before the end id, without special words.

        A continuing piece without a word before it begins a word.
        """
        return [places for places, _ in self._words(ids)]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Join the pieces of the words before the end id, without special words."""
        return [text.strip() for _, text in self._words(ids)]

    def sentence(self, ids: Iterable[int]) -> str:
        """Join the words before the end id to a sentence; a published vocabulary's as its tokeniser does."""
        ids = list(ids)
        if not self.attachment:
            return join_words(self.decode(ids))
        said = [index for index in takewhile(lambda index: index != self.end_id, ids) if index >= len(SPECIAL)]
        spaces = ["" if self.is_attached(index) or self.continues(index) else " " for index in said]
        sentence = _with_bytes("".join(space + self._text(index) for space, index in zip(spaces, said, strict=True)))
        for spaced in _CLEANED_UP if self.clean_up else ():
            sentence = sentence.replace(spaced, spaced.replace(" ", ""))
        return sentence.strip()

    def _words(self, ids: Iterable[int]) -> list[tuple[list[int], str]]:
        """Find the positions and the text of each word before the end id, without words that have no text."""
        words: list[tuple[list[int], str]] = []
        for place, index in enumerate(ids):
            if index == self.end_id:
                break
            if index < len(SPECIAL):
                continue
            if words and self.continues(index):
                words[-1][0].append(place)
                words[-1] = (words[-1][0], words[-1][1] + self._text(index))
            else:
                words.append(([place], self._text(index)))
        return [(places, decoded) for places, text in words if (decoded := _with_bytes(text)).strip()]

    def _text(self, index: int) -> str:
        word = self.words[index]
        if self.continues(index):
            return word[len(self.continuation) :]
        return word[len(self.attachment) :] if self.is_attached(index) else word


def _with_bytes(text: str) -> str:
    """Replace the names of bytes, see :func:`byte_name`, by the text that the bytes encode together."""
    if "<0x" not in text:
        return text
    return _NAMED_BYTES.sub(
        lambda names: bytes.fromhex("".join(re.findall("<0x([0-9A-F]*)", names[0]))).decode("utf-8", "replace"), text
    )


def join_words(words: Sequence[str]) -> str:
    """Join words to a sentence: by spaces, clitics attached to the word before them."""
    sentence = ""
    for word in words:
        sentence += word if not sentence or word in _CLITICS else f" {word}"
    return sentence


def word_starts(words: Sequence[str], sentence: str) -> list[int]:
    """Find the offset of each word in a sentence that consists of them, in characters."""
    starts, end = [], 0
    for word in words:
        start = max(sentence.find(word, end), end)
        starts.append(start)
        end = start + len(word)
    return starts
