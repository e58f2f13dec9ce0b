"""Read and write times for people: ISO 8601, or how long ago."""

import re
from datetime import datetime, timedelta, timezone

from smart_caption_ros.caption_log.schema import CaptionLogError

_UNITS_S = {
    "s|secs?|seconds?": 1,
    "(?-i:m)|mins?|minutes?": 60,  # "2M" would be months
    "h|hrs?|hours?": 3600,
    "d|days?": 86_400,
    "w|wks?|weeks?": 604_800,
}
_AGO = {
    re.compile(rf"(\d+(?:\.\d+)?)\s*(?:{names})(?:\s+ago)?", re.IGNORECASE | re.ASCII): seconds
    for names, seconds in _UNITS_S.items()
}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def parse_time(text: str, now: datetime | None = None) -> int:
    """Parse a time and return nanoseconds since 1970.

    Args:
        text: "2026-11-22", "2026-11-22 14:30", with a zone ("Z", "+01:00") or else in the local one; "now", "today",
            "yesterday" (their beginning); or "90s", "30 min ago", "2h", "3 days ago", "1w".
        now: present time, whose zone is that of texts without one; naive for local time. None reads the clock.

    Raises:
        CaptionLogError: the text is something else.
    """
    now = now or datetime.now()  # local time, whose offset from UTC depends on the day
    word = text.strip()
    try:
        if word.lower() == "now":
            return _nanoseconds(now)
        if word.lower() in ("today", "yesterday"):
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
            return _nanoseconds(midnight - timedelta(days=word.lower() == "yesterday"))
        for pattern, unit_s in _AGO.items():
            if found := pattern.fullmatch(word):
                return _nanoseconds(_utc(now) - timedelta(seconds=float(found[1]) * unit_s))
        # Python 3.10 does not know the Z.
        given = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", word))
        return _nanoseconds(given if given.tzinfo else given.replace(tzinfo=now.tzinfo))
    except (ValueError, OverflowError) as error:
        raise CaptionLogError(
            f"{text!r} is not a time: write 2026-11-22, 2026-11-22T14:30, today, or 2h, 30m, 3d, 1w for so long ago"
        ) from error


def iso_utc(time_ns: int) -> str:
    """Return a time as ISO 8601 in UTC, with milliseconds: "2026-11-22T13:30:00.123Z"."""
    moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def local_time(time_ns: int) -> str:
    """Return a time in the local zone, for a person: "2026-11-22 14:30:00"."""
    return (_EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _nanoseconds(moment: datetime) -> int:
    return (_utc(moment) - _EPOCH) // timedelta(microseconds=1) * 1000


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc)
