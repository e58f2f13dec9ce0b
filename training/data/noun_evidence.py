"""Which objects are known to be in a photograph: files that tell true nouns of a caption from others.

A file is a JSON object::

    {"noun_evidence": 1,
     "nouns": {"sofa": "couch", ...},       the nouns that the file decides, in the singular, with their objects
     "background": ["floor", ...],          those of them that nearly every photograph shows
     "images": {"image3.jpg": {"shown": ["bed"], "possible": ["chair"]}, ...}}

What ``shown`` nouns name is certainly in the photograph, what ``possible`` ones name may be, and what all others of
``nouns`` name is not. Nouns with one object are synonyms.
``python -m training.noun_evidence`` writes the files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.data.json_files import read_json
from training.errors import DataError

VERSION = 1


@dataclass(frozen=True, eq=False)
class DecidedNouns:
    """The nouns that one file decides, in the singular."""

    object_of: Mapping[str, str]
    """Noun to its object, of which other nouns may be names, too."""
    background: frozenset[str]
    """Nouns of what nearly every photograph shows."""

    def objects(self, nouns: Iterable[str]) -> set[str]:
        """Return the objects that nouns name."""
        return {self.object_of[noun] for noun in nouns}


@dataclass(frozen=True)
class NounEvidence:
    """What is known of one photograph."""

    decided: DecidedNouns
    shown: frozenset[str]
    """Nouns of objects that are certainly there."""
    possible: frozenset[str]
    """Nouns of objects that may be there."""


def read_noun_evidence(path: Path) -> dict[str, NounEvidence]:
    """Read a file, by image id.

    Raises:
        DataError: the file is missing or malformed; names the image.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("noun_evidence") != VERSION:
        raise DataError(f"{path}: no noun evidence of version {VERSION}; make it with python -m training.noun_evidence")
    nouns = content.get("nouns")
    if not isinstance(nouns, dict) or not all(isinstance(name, str) for name in nouns.values()):
        raise DataError(f"{path}: nouns is missing or no object of nouns and their objects")
    decided = DecidedNouns(nouns, _nouns(path, content, "background"))
    if unknown := decided.background - nouns.keys():
        raise DataError(f"{path}: background: {min(unknown)!r} is not among nouns")
    images = content.get("images")
    if not isinstance(images, dict):
        raise DataError(f"{path}: images is missing or no object")
    found = {}
    for image, entry in images.items():
        where = f"{path}, image {image}"
        if not isinstance(entry, dict):
            raise DataError(f"{where}: expected shown and possible, found {entry!r}")
        found[image] = NounEvidence(decided, _nouns(where, entry, "shown"), _nouns(where, entry, "possible"))
    return found


def _nouns(where: object, entry: Mapping[str, Any], key: str) -> frozenset[str]:
    value = entry.get(key)
    if not isinstance(value, list) or not all(isinstance(noun, str) for noun in value):
        raise DataError(f"{where}: {key} is missing or no list of nouns")
    return frozenset(value)
