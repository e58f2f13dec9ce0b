"""The table of words that people use for each class of object: `data/class_words.txt`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.errors import CoverageError

_OTHER, _NEVER = "other", "never"


def class_words_path() -> Path:
    """Return the path of the table that ships with the package."""
    return Path(__file__).resolve().parent / "data" / "class_words.txt"


@dataclass(frozen=True)
class ClassWords:
    """A table of words and the classes that they name.

    Attributes:
        classes_of: by word, in the singular, the classes that it names; empty for words that name other things. A
            class name names its class.
        classes: the classes with words in the table, normalised.
        never: words that never name an object.
    """

    classes_of: dict[str, frozenset[str]]
    classes: frozenset[str]
    never: frozenset[str]

    @classmethod
    @cache
    def load(cls, path: Path | None = None) -> ClassWords:
        """Read a table. Each line has a class, `other` or `never`, then a colon and words.

        Args:
            path: the file; None selects the one that ships with the package.

        Raises:
            CoverageError: the file cannot be read, or a line is malformed; one sentence.
        """
        path = path or class_words_path()
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise CoverageError(f"{path}: the words of the classes cannot be read: {reason}") from None
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

    def classes_named_by(self, word: str, class_names: Iterable[str]) -> set[str]:
        """Return those of some classes that a word names by this table or by their own name.

        Args:
            word: in the singular, lower case.
            class_names: normalised.
        """
        return {name for name in class_names if self.verdict(word, name)}

    def verdict(self, word: str, class_name: str) -> bool | None:
        """Return whether a word names a class; None if the table does not decide.

        Args:
            word: in the singular, lower case.
            class_name: normalised.
        """
        if word == class_name:
            return True
        if word in self.never:
            return False
        if word in self.classes_of and class_name in self.classes:
            return class_name in self.classes_of[word]
        return None
