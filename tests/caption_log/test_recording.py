"""The captions of a feed in the log: those with a new meaning, with their pictures and places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from smart_caption_ros.caption_log import CaptionLog, CaptionLogError, LoggedCaption, LogReader
from smart_caption_ros.caption_log.recording import Recorder, record
from smart_caption_ros.captioning import Caption, DetectedObject, Timing
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.imaging.errors import ImageError
from smart_caption_ros.live import CaptionFeed, EventKind, FeedEvent
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason, LazyImage, Pose
from tests.caption_log.rows import START_NS


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CaptionLog]:
    with CaptionLog(tmp_path / "captions.db") as opened:
        yield opened


def live(text: str, *lemmas: str, **fields: Any) -> CaptionRecord:
    """A caption whose first noun names the only object."""
    caption = Caption(
        text=text,
        words=(),
        score=-3.5,
        confidence=0.8,
        alternatives=(),
        objects=(DetectedObject("cup", 41, 0.5, (1.0, 2.0, 3.0, 4.0)),),
        timing=Timing(0.0, 0.0, 0.0, 0.0, 0),
        image_size=(64, 48),
        model="tiny",
        engine="fake",
    )
    nouns = tuple(GroundedNoun(lemma, lemma, 0, None if place else 0, 1.0) for place, lemma in enumerate(lemmas))
    grounding = Grounding(nouns, 0.5, 1.0, (), (), (), 0.001)
    values: dict[str, Any] = {"camera": "front", "received_s": START_NS / 1e9, "stamp_ns": START_NS}
    values |= {"grounding": grounding, "coverage_reason": CoverageReason.NONE}
    return CaptionRecord(source="/caption", caption=caption, **{**values, **fields})


def rows_of(log: CaptionLog) -> list[LoggedCaption]:
    with LogReader(log.path) as reader:
        return list(reader.all_rows())


def test_a_row_has_what_the_caption_has(log: CaptionLog) -> None:
    image = LazyImage.of_pixels(np.full((400, 800, 3), 90, np.uint8))
    pose = Pose("map", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0))
    assert Recorder(log, robot="robot7").take(live("a cup by a door", "cup", "door", image=image, pose=pose))
    (row,) = rows_of(log)
    assert (row.robot, row.camera, row.text, row.score, row.model) == (
        "robot7",
        "front",
        "a cup by a door",
        -3.5,
        "tiny",
    )
    assert [(noun.lemma, noun.supported) for noun in row.nouns] == [("cup", True), ("door", False)]
    assert [(thing.class_name, thing.box_xyxy) for thing in row.objects] == [("cup", (1.0, 2.0, 3.0, 4.0))]
    assert (row.coverage, row.stamp_ns, row.status) == (0.5, START_NS, "ok")
    assert row.pose is not None
    assert row.pose.position == (1.0, 2.0, 3.0)
    assert row.picture is not None
    picture = cv2.imdecode(np.frombuffer(row.picture, np.uint8), cv2.IMREAD_COLOR)
    assert picture.shape == (160, 320, 3)


def test_only_a_new_meaning_of_each_camera_is_written(log: CaptionLog) -> None:
    recorder = Recorder(log)
    items = [
        live("a cup", "cup"),
        live("the red cup", "cup"),
        live("a cup", "cup", camera="rear"),
        live("a dog", "dog"),
        live("a cup", "cup", received_s=START_NS / 1e9 + 60),
        live("", status=CaptionStatus.NOTHING_FOUND),
        live("a horse", "horse", status=CaptionStatus.ERROR),
        live("a cat", "cat", status=CaptionStatus.LOW_CONFIDENCE),
    ]
    for item in items:
        recorder.take(item)
    assert [(row.camera, row.text) for row in rows_of(log)] == [
        ("front", "a cup"),
        ("rear", "a cup"),
        ("front", "a dog"),
        ("front", "a cup"),
        ("front", "a cat"),
    ]
    assert (recorder.written, recorder.unchanged, recorder.captions) == (5, 1, 5)


def test_a_caption_that_flickers_is_written_once_and_again_after_a_while(log: CaptionLog) -> None:
    recorder = Recorder(log)

    def take(text: str, at_s: float) -> bool:
        return recorder.take(live(f"a {text}", text, received_s=START_NS / 1e9 + at_s, stamp_ns=0))

    written = [at_s for at_s in np.arange(0.0, 10.0, 0.25) if take("cup" if at_s % 0.5 else "dog", at_s)]
    assert written == [0.0, 0.25]
    assert recorder.unchanged == 38
    assert take("horse", 9.8)
    assert not take("cup", 9.9)
    assert take("cup", 10.5), "what stays is written in the end"
    assert take("dog", 11.0)


def test_photographs_do_not_flicker(log: CaptionLog) -> None:
    recorder = Recorder(log)
    said = [
        recorder.take(live(f"a {noun}", noun, stamp_ns=None, name="a.jpg")) for noun in ("cup", "dog", "cup", "cup")
    ]
    assert said == [True, True, True, False]


def test_images_without_a_caption_are_counted(log: CaptionLog) -> None:
    recorder = Recorder(log)
    recorder.take(live("a cup", "cup", dropped=3))
    recorder.take(live("", status=CaptionStatus.NOTHING_FOUND))
    recorder.take(live("a horse", "horse", status=CaptionStatus.ERROR))
    assert (recorder.written, recorder.unchanged, recorder.without_caption, recorder.dropped) == (1, 0, 2, 3)


def test_a_broken_image_does_not_cost_the_caption(log: CaptionLog) -> None:
    def decode() -> Any:
        raise ImageError("not an image")

    assert Recorder(log).take(live("a cup", "cup", image=LazyImage(decode)))
    assert rows_of(log)[0].picture is None


def test_without_pictures_no_image_is_decoded(log: CaptionLog) -> None:
    image = LazyImage(lambda: pytest.fail("decoded"))
    assert Recorder(log, picture_side_px=0).take(live("a cup", "cup", image=image))


def test_trouble_is_said_once_and_what_was_lost_is_written_when_it_comes_again(
    log: CaptionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    recorder = Recorder(log, on_problem=said.append)
    with monkeypatch.context() as patched:

        def refuse(row: LoggedCaption) -> int:
            raise CaptionLogError("the log cannot be written: disk full")

        patched.setattr(log, "append", refuse)
        assert not recorder.take(live("a cup", "cup"))
        assert not recorder.take(live("a cup", "cup"))
        assert recorder.problem == "the log cannot be written: disk full"
    assert recorder.take(live("a cup", "cup"))
    assert said == [
        "the log cannot be written: disk full; captions are lost until it can",
        "the caption log is written again; 2 captions are lost",
    ]
    assert (recorder.problem, recorder.failed, recorder.written) == ("", 2, 1)


def test_a_caption_that_was_written_is_not_written_again_if_the_log_cannot_be_counted(tmp_path: Path) -> None:
    class Uncounted(CaptionLog):
        """Cannot be counted after its first row."""

        @property
        def captions(self) -> int:
            if super().captions:
                raise CaptionLogError("the log cannot be read")
            return 0

    with Uncounted(tmp_path / "captions.db") as log:
        recorder = Recorder(log)
        assert recorder.take(live("a cup", "cup"))
        assert not recorder.take(live("a cup", "cup"))
        assert [row.text for row in rows_of(log)] == ["a cup"]
        assert (recorder.written, recorder.failed) == (1, 0)


def test_a_feed_is_written_until_its_end_and_its_events_are_passed_on(log: CaptionLog) -> None:
    feed = CaptionFeed()
    feed.add(live("a cup", "cup"))
    feed.add_event(FeedEvent(EventKind.ERROR, "a frame is broken"))
    feed.add(live("a dog", "dog"))
    feed.close()
    events: list[FeedEvent] = []
    record(feed, Recorder(log), lambda: False, events.append)
    assert [row.text for row in rows_of(log)] == ["a cup", "a dog"]
    assert [event.text for event in events] == ["a frame is broken"]


def test_writing_ends_when_it_should(log: CaptionLog) -> None:
    feed = CaptionFeed()
    feed.add(live("a cup", "cup"))
    record(feed, Recorder(log), lambda: True)
    assert rows_of(log) == []
