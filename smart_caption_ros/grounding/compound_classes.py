"""Class names of several words, and lists of synonyms of class names."""

from collections.abc import Iterable
from pathlib import Path

from smart_caption_ros.detection.class_names import COCO_CLASSES, SPELLINGS, normalise
from smart_caption_ros.grounding.errors import CoverageError

COMPOUND_CLASSES = tuple(name for name in COCO_CLASSES if " " in name)
"""The classes of COCO, which include those of ACVR, whose names have several words."""


def spellings_of(names: Iterable[str]) -> dict[str, str]:
    """Map every spelling of several words to its normalised name."""
    wanted = set(names)
    ways = {name: name for name in wanted}
    ways.update({way: name for way, name in SPELLINGS.items() if name in wanted})
    return {way: name for way, name in ways.items() if " " in way}


def read_synonyms(path: Path) -> dict[str, frozenset[str]]:
    """Read a list of synonyms in CHAIR's format: each line has a class name and its synonyms, with commas between.

    Returns:
        Classes by word or phrase, all normalised.

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
