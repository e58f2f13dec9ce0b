"""A feed of sources captions what it reads, at the speed of the source, and says what it could not read."""

import time
from pathlib import Path

import cv2
import pytest

from smart_caption_ros.live import EventKind, FeedEvent, SourceFeed, open_cameras
from smart_caption_ros.record import CaptionRecord, CaptionStatus, NounState
from smart_caption_ros.sources import Frame, FrameSource, SourceError
from tests.nodes.fake_captioner import BREAKS_THE_ENGINE, FakeCaptioner, FakeCoverage, painted

FakeItem = CaptionRecord | FeedEvent


class Recording(FrameSource):
    """Frames of one shade each, with stamps at a fixed period."""

    def __init__(self, shades, period_s, start_s=0.0, error=""):
        super().__init__("recording")
        self._shades, self._period_s, self._start_s, self._error = shades, period_s, start_s, error

    @classmethod
    def accepts(cls, spec):
        return False

    description = "a recording"

    def _frames(self, step):
        for index, shade in enumerate(self._shades):
            stamp_ns = None if self._period_s is None else round(1e9 * (self._start_s + index * self._period_s))
            yield Frame(painted(shade), f"recording#{index}", index, stamp_ns)
        if self._error:
            raise SourceError(self._error)


def items_of(feed):
    """Everything that a feed gives until its end."""
    items, end_s = [], time.monotonic() + 20
    with feed:
        while not feed.ended:
            assert time.monotonic() < end_s
            if (item := feed.next(1.0)) is not None:
                items.append(item)
    return items


def captions_of(items):
    return [item for item in items if isinstance(item, CaptionRecord)]


def test_every_photograph_of_a_folder_is_captioned_and_a_broken_one_is_an_error_in_its_place(tmp_path):
    for number, shade in enumerate((10, 20, 30)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), painted(shade))
    (tmp_path / "1.png").write_bytes(b"no picture")
    items = items_of(SourceFeed(open_cameras([str(tmp_path)]), FakeCaptioner(), interval_s=0.0))
    captions = captions_of(items)
    assert [(live.name, live.caption.text) for live in captions] == [("0.png", "shade 10"), ("2.png", "shade 30")]
    assert all((live.camera, live.stamp_ns, live.dropped) == (tmp_path.stem, None, 0) for live in captions)
    assert all(live.age_s is not None and live.age_s >= 0 for live in captions)
    events = [item for item in items if isinstance(item, FeedEvent)]
    assert [event.kind for event in events] == [EventKind.APPEARED, EventKind.ERROR, EventKind.GONE, EventKind.ENDED]
    assert "1.png" in events[1].text


def test_of_a_recording_that_is_faster_than_the_captioner_the_newest_frames_are_captioned():
    feed = SourceFeed({"r": Recording([*range(1, 41)], 0.01, start_s=5.0)}, FakeCaptioner(delay_s=0.1))
    captions = captions_of(items_of(feed))
    assert captions[-1].caption.text == "shade 40"
    assert 2 <= len(captions) < 40
    assert sum(live.dropped for live in captions) + len(captions) == 40
    assert captions[-1].stamp_ns == round(5.39e9)
    assert feed.cameras[0].dropped == sum(live.dropped for live in captions)


def test_several_cameras_take_turns_and_one_that_fails_leaves_the_others_alone():
    cameras = {"good": Recording([1, 2, 3], None), "bad": Recording([9], None, error="the cable is out")}
    feed = SourceFeed(cameras, FakeCaptioner(), interval_s=0.0)
    items = items_of(feed)
    assert sorted(live.camera for live in captions_of(items)) == ["bad", "good", "good", "good"]
    assert [i.text for i in items if isinstance(i, FeedEvent) and i.kind is EventKind.ERROR] == ["the cable is out"]
    assert [camera.is_online for camera in feed.cameras] == [False, False]


def test_a_frame_that_the_engine_cannot_caption_has_its_answer_and_the_next_one_is_captioned():
    feed = SourceFeed({"r": Recording([BREAKS_THE_ENGINE, 9], None)}, FakeCaptioner(), interval_s=0.0)
    broken, good = captions_of(items_of(feed))
    assert (broken.status, broken.caption.text, broken.caption.image_size) == (CaptionStatus.ERROR, "", (64, 48))
    assert "burnt out" in broken.status_message
    assert good.status is CaptionStatus.OK


def test_nouns_are_matched_with_objects_and_unchecked_without_a_detector():
    for detector, state in ((Path("d.onnx"), NounState.UNSUPPORTED), (None, NounState.UNCHECKED)):
        captioner = FakeCaptioner(detector=detector)
        (live,) = captions_of(
            items_of(SourceFeed({"r": Recording([9], None)}, captioner, FakeCoverage(), interval_s=0.0))
        )
        assert {live.state_of(noun) for noun in live.grounding.nouns} == {state}


def test_a_loop_goes_on_until_it_is_closed_and_closing_ends_its_threads():
    feed = SourceFeed({"r": Recording([1, 2], None)}, FakeCaptioner(), interval_s=0.0, loop=True)
    with feed:
        seen = [feed.next(5.0) for _ in range(8)]
    assert len(captions_of([item for item in seen if item])) == 7
    while feed.next(0.0) is not None:
        pass
    assert feed.ended


def test_cameras_are_named_after_their_sources(tmp_path, monkeypatch):
    for folder in ("a/room", "b/room", "000000"):
        (tmp_path / folder).mkdir(parents=True)
        cv2.imwrite(str(tmp_path / folder / "1.png"), painted(1))
    monkeypatch.chdir(tmp_path)
    assert list(open_cameras(["000000"])) == ["000000"]
    assert list(open_cameras([str(tmp_path / "a" / "room"), str(tmp_path / "b" / "room")])) == ["room", "room 2"]
    with pytest.raises(SourceError, match="no file or folder"):
        open_cameras(["/no/such/thing"])
