"""Names of object classes: one spelling for detectors and data sets, and lists of names in files and metadata."""

from __future__ import annotations

import ast
from pathlib import Path

from smart_caption_ros.detection.errors import DetectorError

# Other spellings of the same name, not synonyms: abbreviations, British and American English. Names that are written
# apart or joined (diningtable, snow board) need no entry.
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


def normalise(name: str) -> str:
    """Normalise a class name: lower case, spaces for hyphens and underscores, one spelling.

    ``Dining_Table`` and ``diningtable`` become ``dining table``, ``snow board`` ``snowboard``, ``tvmonitor``
    ``television``.
    """
    plain = " ".join(name.lower().replace("_", " ").replace("-", " ").split())
    return _JOINED.get(plain.replace(" ", ""), plain)


def read_class_names(path: Path) -> list[str]:
    """Read class names, one a line; the line number, from 0, is the class id.

    Raises:
        DetectorError: the file cannot be read or is not UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8-sig").rstrip().splitlines()
    except OSError as error:
        raise DetectorError(f"{path}: the class names cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DetectorError(f"{path}: the class names cannot be read: it is not UTF-8 text") from None


def parse_class_names(text: str) -> list[str]:
    """Parse class names in a graph's metadata: a list, a dict by class id, or names separated by commas.

    Returns:
        Names by class id, "" where an id has none; an empty list for any other text.
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # all that literal_eval raises
        value = [name.strip() for name in text.split(",")] if text.strip() else []
    if isinstance(value, dict) and all(isinstance(key, int) and 0 <= key < _MAX_LISTED for key in value):
        value = [value.get(number, "") for number in range(max(value, default=-1) + 1)]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        return []
    return list(value)
