"""Names of object classes: one spelling for detectors and data sets, and lists of names in files and metadata."""

import ast
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.text import reading_problem

# Other spellings of the same name, not synonyms: abbreviations, British and American English. Spellings that differ by
# spaces alone (diningtable, snow board) need no entry.
SPELLINGS = {
    "aeroplane": "airplane",
    "hair dryer": "hair drier",
    "motorbike": "motorcycle",
    "racquet": "racket",
    "tennis racquet": "tennis racket",
    "tv": "television",
    "tv monitor": "television",
}

COCO_CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis",
    "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich",
    "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed",
    "dining table", "toilet", "television", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave",
    "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors", "teddy bear", "hair drier",
    "toothbrush",
)  # fmt: skip
"""The 80 classes of COCO in their order, as :func:`normalise` spells them."""

NO_OBJECTS = frozenset({"", "n/a", "none", "bg", "background"})
"""Normalised names that stand for no object in lists of classes."""

_JOINED = {name.replace(" ", ""): name for name in COCO_CLASSES} | {
    way.replace(" ", ""): name for way, name in SPELLINGS.items()
}
_MAX_LISTED = 10_000
_NUMBERED = re.compile(r"(\d{1,5})\s*(?:[:=,;\s]\s*|[.)-]\s+)(\S.*)")  # "56 chair", "56: chair", "56. chair"
_NO_LIST = "they are neither a list of names nor a name for each class id"


class DetectorError(ExpectedError):
    """A detector's graph or its class names are missing or not supported."""


def normalise(name: str) -> str:
    """Normalise a class name: lower case, spaces for hyphens and underscores, one spelling.

    ``Dining_Table`` and ``diningtable`` become ``dining table``, ``snow board`` ``snowboard``, ``tvmonitor``
    ``television``.
    """
    plain = " ".join(name.lower().replace("_", " ").replace("-", " ").split())
    return _JOINED.get(plain.replace(" ", ""), plain)


def read_class_names(path: Path) -> list[str]:
    """Read the class names in a file, see :func:`parse_class_names`; raises DetectorError for anything else."""
    try:
        return parse_class_names(path.read_text(encoding="utf-8-sig").rstrip())
    except (OSError, ValueError) as error:
        raise DetectorError(f"{path}: the class names cannot be read: {reading_problem(error)}") from None


def parse_class_names(text: str) -> list[str]:
    """Parse class names.

    Args:
        text: a list of names, or an object with the name of each class id or the class id of each name, as JSON or as
            Python writes it; or one name a line, or between commas. Where every line begins with a number ("56 chair",
            "56: chair"), the numbers are the class ids; else ids count the lines from 0.

    Returns:
        Names by class id, "" where an id has none.

    Raises:
        ValueError: the text is something else; one clause.
    """
    if text.lstrip()[:1] in ("[", "{", "("):
        return _by_class_id(_parse_value(text))
    names = text.splitlines() if "\n" in text.strip() else text.split(",")
    names = [name.strip().removeprefix("- ").strip() for name in names]  # a list in YAML
    numbered = [_NUMBERED.fullmatch(name) for name in names if name]
    with_number = sum(match is not None for match in numbered)
    # Braces and colons belong to other formats; a line without a number among numbered ones is the header of a table.
    if any(name.endswith(("{", "}", ":")) for name in names) or len(numbered) / 2 < with_number < len(numbered):
        raise ValueError(_NO_LIST)
    if with_number == len(numbered):
        return _by_class_id([(int(match[1]), match[2]) for match in numbered if match])
    return [name.strip("\"'") for name in names]


def _parse_value(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # all that literal_eval raises
            return parse(text)
    raise ValueError(_NO_LIST)


def _by_class_id(value: Any) -> list[str]:
    """Return the names in a list, in pairs of class id and name, or in a dict in either direction."""
    if isinstance(value, dict):
        are_ids = all(isinstance(item, int) for item in value.values())
        value = [(item, key) for key, item in value.items()] if are_ids else list(value.items())
    elif isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = list(enumerate(value))
    if not isinstance(value, list | tuple):
        raise ValueError(_NO_LIST)
    names: dict[int, str] = {}
    for pair in value:
        number, name = pair if isinstance(pair, list | tuple) and len(pair) == 2 else (None, None)
        number = int(number) if isinstance(number, str) and number.isdecimal() else number
        if not isinstance(name, str) or not isinstance(number, int) or not 0 <= number < _MAX_LISTED:
            raise ValueError(_NO_LIST)
        if number in names:
            raise ValueError(f"class id {number} has two names")
        names[number] = name.strip().strip("\"'")
    return [names.get(number, "") for number in range(max(names, default=-1) + 1)]
