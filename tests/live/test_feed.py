"""The queue between a feed and its consumer: in order, bounded, with statistics of each camera."""

import time
from dataclasses import replace

import numpy as np
import pytest

from smart_caption_ros.live import MAX_CAMERAS, CaptionFeed, EventKind, FeedError, FeedEvent, Health, LiveStatistics
from smart_caption_ros.record import CaptionRecord, CaptionStatus, LazyImage, Trust
from tests.nodes.fake_captioner import shade_caption


def live(camera="front", *, at_s=None, **fields):
    at_s = time.monotonic() if at_s is None else at_s
    values = {"camera": camera, "source": f"/{camera}", "received_monotonic_s": at_s, **fields}
    return replace(CaptionRecord.without_caption(CaptionStatus.OK, ""), **values)


def test_captions_come_in_order_and_a_late_consumer_loses_the_oldest_ones_which_are_counted():
    buffer = CaptionFeed(capacity=2)
    for number in range(5):
        buffer.add(live(name=str(number)))
    assert [buffer.next(0).name for _ in range(2)] == ["3", "4"]
    assert buffer.next(0) is None
    (front,) = buffer.cameras
    assert (front.captions, front.lost) == (5, 3)


def test_captions_below_the_minimum_of_the_feed_are_refused():
    feed = CaptionFeed(trust=Trust(0.7, lists_objects=True))
    for calibrated in (0.8, 0.6):
        feed.add(CaptionRecord.of(replace(shade_caption(9, 64, 48), calibrated_confidence=calibrated)))
    assert [feed.next(0).caption.text for _ in range(2)] == ["shade 9", "a wall"]


def test_of_more_cameras_than_are_kept_the_one_gives_way_that_has_been_silent_for_the_longest_time():
    feed = CaptionFeed()
    feed.add(live("front"))
    feed.add_camera("announced", "/announced", "there")
    for number in range(MAX_CAMERAS):
        feed.add(live(f"invented {number}"))
        feed.add(live("front"))
    assert len(feed.cameras) == len(feed.camera_names) == MAX_CAMERAS
    assert "front" in feed.camera_names
    assert not {"announced", "invented 0"} & feed.camera_names
    assert feed.forgotten == 2
    feed.add(live("invented 0"))
    assert "invented 1" not in feed.camera_names, "the next one"


def test_images_that_wait_do_not_fill_the_memory():
    buffer = CaptionFeed()
    image = LazyImage.of_pixels(np.zeros((2, 2, 3), np.uint8))
    for _ in range(100):
        buffer.add(live(image=image))
    kept = [item.image is not None for _ in range(100) if isinstance(item := buffer.next(0), CaptionRecord)]
    assert len(kept) == 100
    assert kept == [True] * 16 + [False] * 84


def test_a_camera_that_goes_and_comes_back_says_so_once_each_and_keeps_its_counts():
    buffer = CaptionFeed()
    for _ in range(2):
        buffer.add_camera("front", "/front", "there")
    buffer.add(live())
    for _ in range(2):
        buffer.remove_camera("front", "away")
    assert not buffer.cameras[0].is_online
    buffer.add_camera("front", "/front", "back")
    items = [buffer.next(0) for _ in range(4)]
    assert [item.kind if isinstance(item, FeedEvent) else "caption" for item in items] == [
        EventKind.APPEARED,
        "caption",
        EventKind.GONE,
        EventKind.APPEARED,
    ]
    assert buffer.next(0) is None
    assert buffer.cameras[0].captions == 1


def test_a_node_without_diagnostics_for_three_of_its_periods_does_not_respond(monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    buffer = CaptionFeed()
    buffer.add(live())

    def is_responding():
        return buffer.cameras[0].is_responding

    now_s = 1000.0
    assert is_responding(), "it has never sent any"
    buffer.set_health("front", Health.OK, "fine")
    now_s += 2.9
    assert is_responding()
    now_s += 0.2
    assert not is_responding()
    now_s += 6.9
    buffer.set_health("front", Health.OK, "fine")  # it sends them every 10 s
    now_s += 29.0
    assert is_responding()
    now_s += 2.0
    assert not is_responding()


def test_the_health_of_a_camera_is_an_event_only_where_its_level_changes():
    buffer = CaptionFeed()
    buffer.add(live())
    buffer.next(0)
    for health, message in [
        (Health.OK, "2.0 images a second"),
        (Health.ERROR, "no image for 3 s"),
        (Health.ERROR, "no image for 4 s"),
        (Health.OK, "fine"),
    ]:
        buffer.set_health("front", health, message)
    assert [buffer.next(0).text for _ in range(2)] == ["no image for 3 s", "fine"]
    assert buffer.next(0) is None
    assert buffer.cameras[0].health_message == "fine"
    buffer.set_health("unknown camera", Health.ERROR, "?")
    assert buffer.next(0) is None


def test_a_closed_feed_gives_what_is_left_and_then_its_failure():
    buffer = CaptionFeed()
    buffer.add(live())
    buffer.close("the end", FeedError("of another type"))
    buffer.add(live())
    assert isinstance(buffer.next(0), CaptionRecord)
    assert buffer.next(0).kind is EventKind.ENDED
    assert buffer.ended
    with pytest.raises(FeedError, match="of another type"):
        buffer.next(0)


def test_statistics_count_statuses_drops_and_ages_of_the_last_seconds():
    statistics = LiveStatistics("front", "/front")
    for second in range(100):
        status = CaptionStatus.STALE if second % 10 == 0 else CaptionStatus.OK
        statistics.add(live(at_s=second, age_at_start_s=second / 1000, status=status, dropped=2))
    summary = statistics.summary(99.0)
    assert (summary.captions, summary.dropped) == (100, 200)
    assert summary.by_status == {CaptionStatus.OK: 90, CaptionStatus.STALE: 10}
    assert summary.rate_hz == pytest.approx(1, rel=0.05)
    assert summary.age_p50_s == pytest.approx(0.084, abs=0.001)
    assert summary.age_p95_s == pytest.approx(0.0975, abs=0.001)
    assert summary.last_received_monotonic_s == 99
