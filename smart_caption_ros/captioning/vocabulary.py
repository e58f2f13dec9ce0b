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
    """Words by id; ids 0 to 3 are padding, begin, end and unknown.

    Raises:
        ValueError: the special words are not the first words, or a word occurs twice or is empty.
    """

    words: tuple[str, ...]

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
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Read a file with one word a line, UTF-8; the line number, from 0, is the id."""
        return cls(tuple(Path(path).read_text(encoding="utf-8").splitlines()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file for :meth:`load`."""
        Path(path).write_text("".join(f"{word}\n" for word in self.words), encoding="utf-8")

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Look up the ids of words; unknown words have the unknown id, and no begin or end id is added."""
        ids: dict[str, int] = self._ids  # type: ignore[attr-defined]
        return [ids.get(word, self.unknown_id) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Look up the words before the end id, without special words."""
        words = []
        for index in ids:
            if index == self.end_id:
                break
            if index >= len(SPECIAL):
                words.append(self.words[index])
        return words


def join_words(words: Sequence[str]) -> str:
    """Join words to a sentence: by spaces, clitics attached to the word before them."""
    sentence = ""
    for word in words:
        sentence += word if not sentence or word in _CLITICS else f" {word}"
    return sentence


def word_starts(words: Sequence[str]) -> list[int]:
    """Find the offset of each word in the sentence of :func:`join_words`, in characters."""
    return [len(join_words(words[: i + 1])) - len(word) for i, word in enumerate(words)]
