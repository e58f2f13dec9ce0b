"""The words of a class: the table `data/class_words.txt`, and lists of synonyms."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from smart_caption_ros.captioning.guidance import Pieces
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.errors import CoverageError
from smart_caption_ros.text import reading_problem

_OTHER, _NEVER = "other", "never"


@dataclass(frozen=True)
class ClassWords:
    """A table of words and the classes that they name.

    Attributes:
        classes_of: classes that each word, in the singular, names; none for words that name other things. A class name
            names its class.
        classes: the classes with words in the table, normalised.
        never: words that never name an object.
    """

    classes_of: dict[str, frozenset[str]]
    classes: frozenset[str]
    never: frozenset[str]

    @classmethod
    @cache
    def load(cls, path: Path | None = None) -> "ClassWords":
        """Read a table; without a path, the one in the package. Each line has a class, `other` or `never`, a colon and
        words.

        Raises CoverageError if the file cannot be read or a line is malformed.
        """
        path = path or Path(__file__).resolve().parent / "data" / "class_words.txt"
        lines = _read_lines(path, "words of the classes")
        meant: dict[str, set[str]] = {}
        classes: set[str] = set()
        never: set[str] = set()
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, colon, words = line.partition(":")
            name = normalise(name)
            if not (name and colon and words.split()):
                raise CoverageError(f"{path}, line {number}: expected a class, a colon and words")
            if name == _NEVER:
                never.update(words.split())
                continue
            if name != _OTHER:
                classes.add(name)
                meant.setdefault(name, set()).add(name)
            for word in words.split():
                meant.setdefault(word, set()).update({name} - {_OTHER})
        return cls({word: frozenset(names) for word, names in meant.items()}, frozenset(classes), frozenset(never))

    def verdict(self, word: str, class_name: str) -> bool | None:
        """Return whether a word, a lower-case singular, names a normalised class; None if the table does not decide."""
        if word == class_name:
            return True
        if word in self.never:
            return False
        if word in self.classes_of and class_name in self.classes:
            return class_name in self.classes_of[word]
        return None


def class_pieces(vocabulary: Vocabulary) -> Pieces | None:
    """Find the class words that a vocabulary spells in several pieces; None for a vocabulary of whole words."""
    if not vocabulary.continuation:
        return None
    table = ClassWords.load()
    seconds: dict[int, set[int]] = {}
    for word, classes in table.classes_of.items():
        pieces = vocabulary.split(word) if classes else []
        first = vocabulary.words[pieces[0]] if len(pieces) > 1 else ""
        if first and not {first, first.removesuffix("s")} & table.classes_of.keys():
            seconds.setdefault(pieces[0], set()).add(pieces[1])
    width = max(map(len, seconds.values()), default=1)
    table_of_seconds = np.full((len(vocabulary), width), -1, np.int64)
    for piece, following in seconds.items():
        table_of_seconds[piece, : len(following)] = sorted(following)
    return Pieces(np.array([vocabulary.continues(index) for index in range(len(vocabulary))]), table_of_seconds)


def read_synonyms(path: Path) -> dict[str, frozenset[str]]:
    """Read a list of synonyms in CHAIR's format: each line has a class name and its synonyms, with commas between.

    Returns:
        Classes by word or phrase, all normalised.

    Raises:
        CoverageError: the file cannot be read or holds no line with a comma.
    """
    lines = _read_lines(path, "list of synonyms")
    classes: dict[str, set[str]] = {}
    for line in lines:
        words = [normalise(word) for word in line.split(",") if word.strip()]
        for word in words:
            classes.setdefault(word, set()).add(words[0])
    if not any("," in line for line in lines):
        raise CoverageError(f"{path} is no list of synonyms: expected a class and its words on a line, with commas")
    return {word: frozenset(names) for word, names in classes.items()}


def _read_lines(path: Path, content: str) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CoverageError(f"{path}: the {content} cannot be read: {reading_problem(error)}") from None
