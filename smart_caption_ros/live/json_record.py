"""A live caption as JSON values, for pipes, pages and exports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from smart_caption_ros.caption_json import FORMAT, caption_record
from smart_caption_ros.live.live_caption import LiveCaption


def to_json(live: LiveCaption) -> dict[str, Any]:
    """Convert to JSON values: the keys of `smart-caption describe --json` but `image`, and those of a live caption.

    Times are seconds with 6 decimals, but `stamp`, a string with 9; durations are milliseconds.
    """
    return {
        "format": FORMAT,
        "camera": live.camera,
        "source": live.source,
        "name": live.name,
        "stamp": None if live.stamp_ns is None else f"{live.stamp_ns // 10**9}.{live.stamp_ns % 10**9:09d}",
        "frame_id": live.frame_id,
        "received": round(live.received_s, 6),
        "status": live.status.value,
        "status_message": live.status_message,
        "age_ms": None if live.age_s is None else round(1000 * live.age_s, 3),
        "dropped": live.dropped,
        **caption_record(live.caption, live.grounding),
        "looked_for_objects": live.looked_for_objects,
        "coverage_reason": live.coverage_reason,
        "pose": None if live.pose is None else asdict(live.pose),
    }
