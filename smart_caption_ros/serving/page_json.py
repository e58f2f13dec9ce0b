"""Captions as the JSON that the page reads, and server-sent events."""

from collections.abc import Sequence
from typing import Any

from smart_caption_ros.grounding.named_objects import GroundedNoun
from smart_caption_ros.json_text import json_text, rounded
from smart_caption_ros.live import MAX_CAMERAS, CameraSummary, Health
from smart_caption_ros.record import CaptionRecord

_COUNTS = {
    word: count
    for count, words in {1: "a an one", 2: "two both couple", 3: "three", 4: "four", 5: "five", 6: "six"}.items()
    for word in words.split()
}
_UNWELL = (Health.WARNING, Health.ERROR)


def caption_json(record: CaptionRecord, number: int, picture: str | None) -> dict[str, Any]:
    """Return the JSON of a record with the values that the page needs in addition.

    `received_monotonic` is a time of the server's :func:`time.monotonic`, as `now_s` of the event `hello`;
    `named_objects` has the indices of the objects that each noun names, first the one that it was matched with.

    Args:
        number: unique number of the caption.
        picture: address of its frame; None if there is none.
    """
    nouns = record.grounding.nouns if record.grounding else ()
    return {
        **record.to_json(),
        "number": number,
        "picture": picture,
        "received_monotonic": round(record.received_monotonic_s, 2),
        "named_objects": [_named_objects(record, noun) for noun in nouns],
    }


def status_json(
    cameras: Sequence[CameraSummary], waiting_for: Sequence[str], notes: dict[str, str], forgotten: int = 0
) -> dict[str, Any]:
    """Convert the statistics of the cameras to JSON values.

    Args:
        notes: a sentence about each camera; empty or absent if there is none.
    """
    return {
        "waiting_for": "; ".join(waiting_for),
        "note": (
            f"More than {MAX_CAMERAS} cameras: those that were silent for the longest time are not shown any more."
            if forgotten
            else ""
        ),
        "cameras": {
            camera.camera: {
                "rate_hz": rounded(camera.rate_hz),
                "is_online": camera.is_online,
                "is_responding": camera.is_responding,
                "dropped": camera.dropped,
                "health": camera.health.value,
                "note": notes.get(camera.camera) or _health_note(camera),
            }
            for camera in cameras
        },
    }


def event(name: str, value: Any) -> bytes:
    """Encode a server-sent event; JSON escapes the line ends of all texts."""
    return f"event: {name}\ndata: {to_json(value)}\n\n".encode()


def to_json(value: Any) -> str:
    """Encode as compact JSON in ASCII."""
    return json_text(value, separators=(",", ":"))


def _health_note(camera: CameraSummary) -> str:
    if not camera.is_responding:
        return "The caption node has stopped sending diagnostics: it has ended, hangs, or cannot be reached."
    return camera.health_message if camera.health in _UNWELL else ""


def _named_objects(record: CaptionRecord, noun: GroundedNoun) -> list[int]:
    """Return the indices of the objects that a noun names, first the one that it was matched with.

    A plural names as many objects of the class as the number word before it says ("two bottles"); without a number
    word it names all of them.
    """
    if noun.object_index is None:
        return []
    objects, words = record.caption.objects, record.caption.words
    first = objects[noun.object_index]
    indices = [noun.object_index]
    if noun.lemma.lower() != noun.text.lower():
        indices += [
            index for index, item in enumerate(objects) if item.class_name == first.class_name and item is not first
        ]
    others = {other.word_index for other in record.grounding.nouns} if record.grounding else set()
    for index in range(noun.word_index - 1, max(noun.word_index - 4, -1), -1):
        if index in others or index >= len(words):
            break
        if (count := _COUNTS.get(words[index].text.lower())) is not None:
            return indices[:count]
    return indices
