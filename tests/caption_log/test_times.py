"""Times as a person writes them."""

import time
from datetime import datetime, timedelta, timezone

import pytest

from smart_caption_ros.caption_log import CaptionLogError
from smart_caption_ros.caption_log.times import iso_utc, parse_time

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 22, 14, 30, 0, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-22T12:30:00.000Z"),
        ("today", "2026-11-21T22:00:00.000Z"),
        ("Yesterday", "2026-11-20T22:00:00.000Z"),
        ("90s", "2026-11-22T12:28:30.000Z"),
        ("30 min ago", "2026-11-22T12:00:00.000Z"),
        ("2h ago", "2026-11-22T10:30:00.000Z"),
        ("1.5 hours", "2026-11-22T11:00:00.000Z"),
        ("3 days ago", "2026-11-19T12:30:00.000Z"),
        ("2wks", "2026-11-08T12:30:00.000Z"),
        ("2m", "2026-11-22T12:28:00.000Z"),
        ("2026-11-20", "2026-11-19T22:00:00.000Z"),
        ("2026-11-20 08:15", "2026-11-20T06:15:00.000Z"),
        ("2026-11-20T08:15:01.500Z", "2026-11-20T08:15:01.500Z"),
        ("2026-11-20T08:15:00+05:30", "2026-11-20T02:45:00.000Z"),
    ],
)
def test_times(text, expected):
    assert iso_utc(parse_time(text, NOW)) == expected


@pytest.fixture
def berlin(monkeypatch):
    """Local time of a place where clocks change on 2026-03-29 and 2026-10-25."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ("2026-11-22T14:30", "2026-07-01T14:30", "2026-07-01T12:30:00.000Z"),
        ("2026-07-01T14:30", "2026-11-22 14:30", "2026-11-22T13:30:00.000Z"),
        ("2026-10-25T14:30", "today", "2026-10-24T22:00:00.000Z"),
        ("2026-03-29T14:30", "today", "2026-03-28T23:00:00.000Z"),
        ("2026-03-30T14:30", "yesterday", "2026-03-28T23:00:00.000Z"),
        ("2026-10-25T14:30", "24 hours ago", "2026-10-24T13:30:00.000Z"),
    ],
)
@pytest.mark.usefixtures("berlin")
def test_a_local_time_has_the_offset_of_its_own_day(now, text, expected):
    assert iso_utc(parse_time(text, datetime.fromisoformat(now))) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "2026-13-01", "h", "-2h", "99999999999 weeks", "2h later"),
        *("500ms", "2 mos", "3 months ago", "2 decades", "2 score", "1 seconde", "5 mi", "1y", "2M", "2M ago"),
    ],
)
def test_what_is_no_time_gets_a_sentence(text):
    with pytest.raises(CaptionLogError, match="is not a time: write 2026-11-22"):
        parse_time(text, NOW)
