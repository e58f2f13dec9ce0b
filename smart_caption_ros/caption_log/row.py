"""One row of the caption log: the JSON of a caption record. Imports neither NumPy nor OpenCV: a search starts fast."""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smart_caption_ros.text import shortened

if TYPE_CHECKING:
    from smart_caption_ros.record import CaptionRecord

MAX_TEXT, MAX_NAME, MAX_ITEMS = 2000, 200, 256
"""Maximum characters of a caption and of any other text, and maximum length of a list."""
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class LogRow:
    """A caption as the log keeps it.

    Attributes:
        id: time of the image in milliseconds since 1970, or the next free number.
        time_ns: when the image was taken, see :attr:`smart_caption_ros.record.CaptionRecord.time_ns`.
        values: JSON of the caption record.
        picture: a small JPEG of the image; None if the row has none, or if it was not read.
    """

    id: int
    time_ns: int
    values: Mapping[str, Any]
    picture: bytes | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        return str(self.values["text"])

    @property
    def camera(self) -> str:
        return str(self.values["camera"])

    @property
    def robot(self) -> str:
        return str(self.values["robot"])

    @property
    def pose(self) -> Mapping[str, Any] | None:
        """Where the robot was: `frame_id`, `position`, `orientation`; None if unknown."""
        pose: Mapping[str, Any] | None = self.values["pose"]
        return pose

    @property
    def classes(self) -> Counter[str]:
        """Classes of the detected objects, and how many there are of each."""
        return Counter(item["class_name"] for item in self.values["objects"])

    @property
    def search_terms(self) -> tuple[str, ...]:
        """Words that a search finds beside those of the text: lemmas ("person" for "people") and classes."""
        return tuple(dict.fromkeys([*(noun["lemma"] for noun in self.values["nouns"]), *self.classes]))

    def record(self) -> "CaptionRecord":
        """Convert to a record with its picture; raises ValueError if the row is damaged."""
        from smart_caption_ros.imaging import decode_image_bytes
        from smart_caption_ros.record import CaptionRecord, LazyImage

        jpeg = self.picture
        image = None if jpeg is None else LazyImage(lambda: decode_image_bytes(jpeg), jpeg)
        return CaptionRecord.from_json(self.values, image)


def bounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a record within limits, so that a message from outside cannot fill the log.

    Texts are cut to one line of a maximum length, and lists to a maximum length. A pose with a number that is not
    finite becomes null.
    """
    kept: dict[str, Any] = {name: _bounded(value) for name, value in values.items()}
    kept["text"] = one_line(values["text"], MAX_TEXT)
    words, objects = len(kept["words"]), len(kept["objects"])
    kept["nouns"] = [
        {**noun, "object_index": index if (index := noun["object_index"]) is not None and index < objects else None}
        for noun in kept["nouns"]
        if noun["word_index"] < words
    ]
    pose = kept["pose"]
    if pose is not None and None in (*pose["position"], *pose["orientation"]):
        kept["pose"] = None
    return kept


def one_line(text: str, limit: int = MAX_NAME) -> str:
    """Return a text with a space for each control character and lone surrogate, of at most `limit` characters."""
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in text)
    return shortened(text, limit)


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {name: _bounded(item) for name, item in value.items()}
    return [_bounded(item) for item in value[:MAX_ITEMS]] if isinstance(value, list) else value
