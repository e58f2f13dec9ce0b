"""Times as a person writes them: ISO 8601, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from smart_caption_ros.caption_log.errors import CaptionLogError

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])[a-z]*(?:\s+ago)?", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def parse_time(text: str, now: datetime | None = None) -> int:
    """Translate a time to nanoseconds since 1970.

    Args:
        text: "2026-11-22", "2026-11-22 14:30", with a zone ("Z", "+01:00") or else in the local one; "now", "today",
            "yesterday" (their beginning); or "90s", "30 min ago", "2h", "3 days ago", "1w".
        now: the present time, with a zone; None takes the clock's.

    Raises:
        CaptionLogError: the text is something else.
    """
    now = datetime.now().astimezone() if now is None else now
    word = text.strip().lower()
    try:
        if word == "now":
            return _nanoseconds(now)
        if word in ("today", "yesterday"):
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
            return _nanoseconds(midnight - timedelta(days=word == "yesterday"))
        if found := _AGO.fullmatch(word):
            return _nanoseconds(now - timedelta(seconds=float(found[1]) * _UNITS_S[found[2]]))
        # Python 3.10 does not know the Z.
        given = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip()))
        return _nanoseconds(given if given.tzinfo else given.replace(tzinfo=now.tzinfo))
    except (ValueError, OverflowError) as error:
        raise CaptionLogError(
            f"{text!r} is not a time: write 2026-11-22, 2026-11-22T14:30, today, or 2h, 30m, 3d for so long ago"
        ) from error


def iso_utc(time_ns: int) -> str:
    """Return a time as ISO 8601 in UTC, with milliseconds: "2026-11-22T13:30:00.123Z"."""
    moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def local_time(time_ns: int) -> str:
    """Return a time in the local zone, for a person: "2026-11-22 14:30:00"."""
    return (_EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
