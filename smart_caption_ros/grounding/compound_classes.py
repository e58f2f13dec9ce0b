"""Which class names are several words, and which other words stand for a class."""

from collections.abc import Iterable
from pathlib import Path

from smart_caption_ros.detection.class_names import COCO_CLASSES, SPELLINGS, normalise
from smart_caption_ros.grounding.errors import CoverageError

COMPOUND_CLASSES = tuple(name for name in COCO_CLASSES if " " in name)
"""The classes of COCO, and so of ACVR, whose names are several words."""


def spellings_of(names: Iterable[str]) -> dict[str, str]:
    """Every multi-word way of writing these normalised names, and the name."""
    wanted = set(names)
    ways = {name: name for name in wanted}
    ways.update({way: name for way, name in SPELLINGS.items() if name in wanted})
    return {way: name for way, name in ways.items() if " " in way}


def read_synonyms(path: Path) -> dict[str, frozenset[str]]:
    """A list of synonyms as published with CHAIR: a line is a class, its name first, then words for it.

    Returns:
        For every word or phrase the classes that it stands for, all normalised.

    Raises:
        CoverageError: the file cannot be read or holds no line with a comma.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CoverageError(f"{path}: the list of synonyms cannot be read: {reason}") from None
    classes: dict[str, set[str]] = {}
    for line in lines:
        words = [normalise(word) for word in line.split(",") if word.strip()]
        for word in words:
            classes.setdefault(word, set()).add(words[0])
    if not any("," in line for line in lines):
        raise CoverageError(f"{path} is no list of synonyms: expected a class and its words on a line, with commas")
    return {word: frozenset(names) for word, names in classes.items()}
