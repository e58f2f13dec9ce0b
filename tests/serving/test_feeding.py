"""What a feed gives reaches the browsers: captions, and the state of each camera in a sentence."""

import pytest

from smart_caption_ros.live import CaptionFeed, EventKind, FeedEvent, Health
from smart_caption_ros.serving.feeding import pass_on
from tests.serving.captions import live_caption


class Recorder:
    def __init__(self):
        self.captions = []
        self.status = {}

    def publish(self, live):
        self.captions.append(live)

    def update_status(self, status):
        self.status = status


class Feed(CaptionFeed):
    """A feed that waits for a camera until it has a caption."""

    @property
    def waiting_for(self):
        return () if self.has_captions else ("light", "is the lamp on?")


@pytest.fixture(autouse=True)
def _no_pause_between_statuses(monkeypatch):
    monkeypatch.setattr("smart_caption_ros.serving.feeding.STATUS_PERIOD_S", 0.0)


def passed_on(feed):
    """Pass on what waits in a feed, and its state once more after its end."""
    feed.close()
    hub = Recorder()
    statuses_after_the_end = iter([False, True])
    pass_on(feed, hub, lambda: feed.ended and next(statuses_after_the_end))
    return hub


def test_captions_and_statistics_are_passed_on_until_the_feed_has_ended():
    feed = Feed()
    for number in range(3):
        feed.add(live_caption(f"caption {number}"))
    hub = passed_on(feed)
    assert [live.caption.text for live in hub.captions] == ["caption 0", "caption 1", "caption 2"]
    assert hub.status["waiting_for"] == ""
    assert hub.status["cameras"]["front"]["is_online"]


def test_a_feed_without_captions_says_what_it_waits_for():
    assert passed_on(Feed()).status["waiting_for"] == "light; is the lamp on?"


def test_what_is_wrong_with_a_camera_is_its_note_until_it_is_over():
    feed = Feed()
    for camera in ("gone", "back", "dark", "fine"):
        feed.add(live_caption(camera=camera))
    for camera in ("gone", "back"):
        feed.remove_camera(camera, f"{camera} has no publisher any more")
    feed.add_camera("back", "/back", "back has a publisher again")
    feed.add_event(FeedEvent(EventKind.ERROR, "cannot read frame 7", "fine"))
    feed.set_health("dark", Health.WARNING, "it is dark")
    for health, message in ((Health.ERROR, "no light"), (Health.OK, "captioning")):
        feed.set_health("back", health, message)
    cameras = passed_on(feed).status["cameras"]
    assert {name: camera["note"] for name, camera in cameras.items()} == {
        "gone": "gone has no publisher any more",
        "back": "",
        "dark": "it is dark",
        "fine": "cannot read frame 7",
    }
    assert not cameras["gone"]["is_online"]
