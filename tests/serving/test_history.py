"""The last two minutes: a caption a second, bounded in time, bytes and number."""

from dataclasses import replace

import pytest

from smart_caption_ros.serving import history
from smart_caption_ros.serving.history import History, Moment
from tests.serving.captions import live_caption


def moment(number, at_s, size=10, camera="front"):
    live = replace(live_caption(camera=camera, shade=None), received_monotonic_s=at_s)
    return Moment(number, live, bytes(size) if size else None)


def numbers(kept, camera="front"):
    return [item.number for item in kept.of(camera)]


def test_moments_older_than_two_minutes_go():
    kept = History()
    for number in range(200):
        kept.add(moment(number, 1000.0 + number, camera="front" if number % 2 else "rear"))
    assert numbers(kept) == [*range(79, 200, 2)]
    assert numbers(kept, "rear") == [*range(80, 200, 2)]
    assert kept.get(78) is None
    assert kept.get(199) is not None


@pytest.mark.parametrize(("name", "limit"), [("MAX_BYTES", 50), ("MAX_MOMENTS", 5)])
def test_the_oldest_go_where_there_are_too_many_or_their_pictures_are_too_large(monkeypatch, name, limit):
    monkeypatch.setattr(history, name, limit)
    kept = History()
    for number in range(20):
        kept.add(moment(number, 1000.0))
        assert len(numbers(kept)) <= 5
    assert numbers(kept) == [15, 16, 17, 18, 19]
    kept.forget("front")
    assert numbers(kept) == []
    for number in range(20, 25):
        kept.add(moment(number, 1000.0))
    assert len(numbers(kept)) == 5, "what was forgotten counts no more"


def test_a_picture_that_is_too_large_by_itself_is_not_kept(monkeypatch):
    monkeypatch.setattr(history, "MAX_BYTES", 50)
    kept = History()
    kept.add(moment(1, 1000.0, size=51))
    kept.add(moment(2, 1000.0))
    assert numbers(kept) == [2]
