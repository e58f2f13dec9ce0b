"""Captions as the JSON that the page reads, and server-sent events."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from smart_caption_ros.live import CameraSummary, CaptionStatus, Health, LiveCaption

_UNWELL = (Health.WARNING, Health.ERROR)


def caption_json(live: LiveCaption, number: int, picture: str | None) -> dict[str, Any]:
    """Convert a caption to JSON values: boxes in pixels, times in milliseconds.

    Args:
        live: the caption.
        number: distinguishes this caption from all others of the server.
        picture: address of its frame; None if there is none.
    """
    caption, grounding = live.caption, live.grounding
    captioned = live.status not in (CaptionStatus.ERROR, CaptionStatus.STALE)
    return {
        "camera": live.camera,
        "source": live.source,
        "name": live.name,
        "number": number,
        "picture": picture,
        "size": list(caption.image_size),
        "status": live.status.value,
        "message": live.status_message,
        "text": caption.text,
        "words": [
            {"text": each.text, "probability": _probability(each.log_probability), "box": _box(each.box_xyxy)}
            for each in caption.words
        ]
        or [{"text": each, "probability": None, "box": None} for each in caption.text.split()],
        "nouns": [
            {
                "first": each.word_index,
                "count": len(each.text.split()),
                "object": each.object_index,
                "state": live.state_of(each).value,
            }
            for each in (grounding.nouns if grounding else ())
        ],
        "objects": [
            {"name": each.class_name, "score": _number(each.score), "box": _box(each.box_xyxy)}
            for each in caption.objects
        ],
        "alternatives": [{"text": each.text, "score": _number(each.score)} for each in caption.alternatives],
        "confidence": _number(caption.confidence) if captioned else None,
        "coverage": {
            "value": _number(grounding.coverage) if grounding else None,
            "noun_support": _number(grounding.noun_support) if grounding else None,
            "missed_classes": list(grounding.missed_classes) if grounding else [],
            "reason": live.coverage_reason,
        },
        "age_ms": None if live.age_s is None else _number(1e3 * live.age_s),
        "total_ms": _number(1e3 * caption.timing.total_s) if captioned else None,
        "model": caption.model,
    }


def status_json(cameras: Sequence[CameraSummary], waiting_for: Sequence[str], notes: dict[str, str]) -> dict[str, Any]:
    """Convert the statistics of the cameras to JSON values.

    Args:
        cameras: their statistics.
        waiting_for: what the feed waits for, before there is a caption.
        notes: for each camera a sentence about it, if there is one.
    """
    return {
        "waiting_for": "; ".join(waiting_for),
        "cameras": {
            each.camera: {
                "rate_hz": _number(each.rate_hz),
                "is_online": each.is_online,
                "dropped": each.dropped,
                "health": each.health.value,
                "note": notes.get(each.camera) or (each.health_message if each.health in _UNWELL else ""),
            }
            for each in cameras
        },
    }


def event(name: str, value: Any) -> bytes:
    """Encode a server-sent event; JSON escapes the line ends of all texts."""
    return f"event: {name}\ndata: {to_json(value)}\n\n".encode()


def to_json(value: Any) -> str:
    """Encode as compact JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _number(value: float | None) -> float | None:
    """A number that JSON has: null for infinity and NaN."""
    return round(float(value), 4) if value is not None and math.isfinite(value) else None


def _probability(log_probability: float) -> float | None:
    return _number(math.exp(min(log_probability, 0.0)))


def _box(box_xyxy: Sequence[float]) -> list[float] | None:
    box = [_number(each) for each in box_xyxy]
    return None if None in box else [round(each, 1) for each in box if each is not None]
