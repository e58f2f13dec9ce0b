"""The vocabulary of a captioner, and how its words are joined to a sentence."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PADDING, BEGIN, END, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIAL = (PADDING, BEGIN, END, UNKNOWN)
# Tokenisers split off clitics ("man's" -> "man 's"); a sentence joins them again.
_CLITICS = frozenset({"'s", "'re", "'ve", "'ll", "'d", "'m", "n't", "'"})


@dataclass(frozen=True)
class Vocabulary:
    """Words by id, or pieces of words; ids 0 to 3 are padding, begin, end and unknown.

    Raises:
        ValueError: the special words are not the first words, or a word occurs twice or is empty.
    """

    words: tuple[str, ...]
    continuation: str = ""
    """Prefix of the pieces that continue the word of the piece before them; empty where all are whole words."""

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
    def load(cls, path: str | os.PathLike[str], continuation: str = "") -> "Vocabulary":
        """Read a file with one word or piece a line, UTF-8; the line number, from 0, is the id."""
        return cls(tuple(Path(path).read_text(encoding="utf-8").splitlines()), continuation)

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

    def word_places(self, ids: Iterable[int]) -> list[list[int]]:
        """Find the places of each word before the end id: one, or one for each of its pieces. Special words have none.

        A piece that continues a word, but has none before it, begins one.
        """
        places: list[list[int]] = []
        for place, index in enumerate(ids):
            if index == self.end_id:
                break
            if index < len(SPECIAL):
                continue
            if places and self.continues(index):
                places[-1].append(place)
            else:
                places.append([place])
        return places

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Join the pieces of the words before the end id, without special words."""
        ids = list(ids)
        return ["".join(self._text(ids[place]) for place in word) for word in self.word_places(ids)]

    def _text(self, index: int) -> str:
        word = self.words[index]
        return word[len(self.continuation) :] if self.continues(index) else word


def join_words(words: Sequence[str]) -> str:
    """Join words to a sentence: by spaces, clitics attached to the word before them."""
    sentence = ""
    for word in words:
        sentence += word if not sentence or word in _CLITICS else f" {word}"
    return sentence


def word_starts(words: Sequence[str]) -> list[int]:
    """Find the offset of each word in the sentence of :func:`join_words`, in characters."""
    return [len(join_words(words[: i + 1])) - len(word) for i, word in enumerate(words)]
