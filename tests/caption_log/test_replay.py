"""A row of the log is the caption that was written, as far as the log keeps it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from smart_caption_ros.caption_log import CaptionLog, LoggedCaption, LogReader
from smart_caption_ros.caption_log.recording import Recorder
from smart_caption_ros.caption_log.replay import live_caption_of
from smart_caption_ros.captioning import Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.record import CaptionRecord, CoverageReason, LazyImage, Pose
from tests.caption_log.rows import full_row

NAN_BOX = (math.nan, 0.0, 1.0, 1.0)
OBJECTS = (
    DetectedObject("ghost", 1, 0.9, NAN_BOX),
    DetectedObject("cup", 2, 0.8, (1.0, 2.0, 30.0, 40.0)),
    DetectedObject("dog", 3, 0.7, (5.0, 6.0, 70.0, 80.0)),
)
LIVE = CaptionRecord(
    camera="front",
    source="/caption",
    caption=Caption(
        text="the dog's red cup by a wall",
        words=tuple(Word(word, -0.1, NAN_BOX) for word in ("the", "dog", "'s", "red", "cup", "by", "a", "wall")),
        score=-2.5,
        confidence=0.625,
        calibrated_confidence=0.75,
        alternatives=(),
        timing=Timing(0.0, 0.0, 0.0, 0.0, 0),
        image_size=(1280, 720),
        model="tiny",
        engine="",
        objects=OBJECTS,
    ),
    stamp_ns=1_790_000_000_000_000_000,
    received_s=1.79e9,
    frame_id="eye",
    grounding=Grounding(
        (
            GroundedNoun("dog", "dog", 1, 2, 1.0),
            GroundedNoun("red cup", "cup", 3, 1, 0.8),
            GroundedNoun("wall", "wall", 7, None, 0.0),
        ),
        0.5,
        2 / 3,
        ("ghost",),
        ("wall",),
        (),
        0.0,
    ),
    coverage_reason=CoverageReason.NONE,
    image=LazyImage.of_pixels(np.full((720, 1280, 3), 90, np.uint8)),
    pose=Pose("map", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)),
)


def written(live: CaptionRecord, folder: Path) -> LoggedCaption:
    with CaptionLog(folder / "log.db") as log:
        assert Recorder(log).take(live)
        with LogReader(log.path) as reader:
            (row,) = reader.all_rows()
    return row


def test_a_caption_comes_back_with_its_objects_and_what_its_nouns_name(tmp_path: Path) -> None:
    again = live_caption_of(written(LIVE, tmp_path))
    caption = again.caption
    assert (caption.text, caption.score, caption.confidence) == (LIVE.caption.text, -2.5, 0.625)
    assert caption.calibrated_confidence == 0.75
    assert (caption.image_size, caption.model) == ((1280, 720), "tiny")
    assert [(item.class_name, item.box_xyxy) for item in caption.objects] == [
        ("cup", (1.0, 2.0, 30.0, 40.0)),
        ("dog", (5.0, 6.0, 70.0, 80.0)),
    ], "a box that is not finite is in no row"
    assert again.grounding is not None
    named = [noun.object_index for noun in again.grounding.nouns]
    assert [None if index is None else caption.objects[index].class_name for index in named] == ["dog", "cup", None]
    words = caption.text.split()
    assert [(words[noun.word_index], noun.text) for noun in again.grounding.nouns] == [
        ("dog's", "dog's"),
        ("red", "red cup"),
        ("wall", "wall"),
    ], "a clitic is no word between spaces"
    assert [again.state_of(noun) for noun in again.grounding.nouns] == [
        LIVE.state_of(noun) for noun in (LIVE.grounding.nouns if LIVE.grounding else ())
    ]
    assert (again.grounding.coverage, again.grounding.missed_classes) == (0.5, ())
    assert (again.camera, again.stamp_ns, again.frame_id, again.pose) == (
        LIVE.camera, LIVE.stamp_ns, LIVE.frame_id, LIVE.pose,
    )  # fmt: skip
    assert again.image is not None
    assert again.image.bgr().shape == (180, 320, 3)


def test_a_row_of_an_older_version_has_no_boxes_and_no_places_of_nouns() -> None:
    row = replace(full_row(), image_size=None, confidence=None, score=None, nouns=full_row().nouns[2:], picture=None)
    live = live_caption_of(row)
    assert live.grounding is None
    assert live.image is None
    assert [item.class_name for item in live.caption.objects] == ["cup", "dining table"]
    assert all(map(math.isnan, (*live.caption.objects[0].box_xyxy, live.caption.confidence, live.caption.score)))


def test_a_noun_beyond_the_end_of_a_text_that_was_cut_off_is_left_out() -> None:
    row = replace(full_row(), text="a red cup")
    grounding = live_caption_of(row).grounding
    assert grounding is not None
    assert [noun.text for noun in grounding.nouns] == ["cup"]
