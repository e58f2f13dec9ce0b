"""Between dataclasses and messages nothing gets lost, and every caption gets the status that it earns."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from builtin_interfaces.msg import Time
from smart_caption_ros.msg import Caption as CaptionMessage
from smart_caption_ros.msg import Coverage
from std_msgs.msg import Header

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import (
    CAPTION_STATUSES,
    caption_message,
    caption_of,
    grounding_of,
    message_without_text,
)
from smart_caption_ros.captioning import Alternative, Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from tests.nodes.fake_captioner import NOTHING_TO_SAY, UNSURE, shade_caption

pytestmark = pytest.mark.needs_ros

HEADER = Header(stamp=Time(sec=1_700_000_000, nanosec=123_456_789), frame_id="left_eye")

float32 = st.floats(allow_nan=False, allow_infinity=False, width=32)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
boxes = st.tuples(float32, float32, float32, float32)
milliseconds = st.integers(0, 10**6).map(lambda ms: ms / 1000)
captions = st.builds(
    Caption,
    text=texts,
    words=st.lists(st.builds(Word, texts, float32, boxes), max_size=4).map(tuple),
    score=float32,
    confidence=float32,
    calibrated_confidence=st.none() | st.floats(0, 1, width=32),
    alternatives=st.lists(st.builds(Alternative, texts, float32), max_size=4).map(tuple),
    timing=st.builds(Timing, milliseconds, milliseconds, milliseconds, milliseconds, st.integers(0, 2**31)),
    image_size=st.tuples(st.integers(1, 10**4), st.integers(1, 10**4)),
    model=texts,
    engine=texts,
    objects=st.lists(st.builds(DetectedObject, texts, st.integers(-1, 2**31 - 1), float32, boxes), max_size=4).map(
        tuple
    ),
)


shares = st.floats(0, 1, width=32)
names = st.lists(texts, max_size=3).map(tuple)
groundings = st.builds(
    Grounding,
    nouns=st.lists(
        st.builds(GroundedNoun, texts, texts, st.integers(0, 99), st.none() | st.integers(0, 1), shares), min_size=1
    ).map(tuple),
    coverage=shares,
    noun_support=shares,
    missed_classes=names,
    unsupported_nouns=names,
    out_of_vocabulary_nouns=names,
    time_s=milliseconds,
)


@given(groundings)
def test_nouns_and_coverage_come_back_from_their_message(grounding: Grounding) -> None:
    caption = shade_caption(9, 64, 48)
    caption = Caption(**{**vars(caption), "objects": caption.objects * 2})
    message = caption_message(msg, caption, HEADER, camera="", min_confidence=0.0, grounding=grounding)
    back = grounding_of(message)
    assert {**vars(back), "time_s": 0} == {**vars(grounding), "time_s": 0}
    assert back.time_s == pytest.approx(grounding.time_s, abs=1e-3)
    assert all(
        (noun.object_index == -1) == (g.object_index is None)
        for noun, g in zip(message.nouns, grounding.nouns, strict=True)
    )


def test_without_objects_the_nouns_are_there_and_the_coverage_is_not_valid() -> None:
    nouns = (GroundedNoun("dogs", "dog", 2, None, 0.0),)
    grounding = Grounding(nouns, None, 0.0, (), ("dog",), (), 0.001)
    message = caption_message(msg, shade_caption(9, 64, 48), HEADER, camera="", min_confidence=0.0, grounding=grounding)
    assert (message.nouns[0].noun, message.nouns[0].object_index) == ("dogs", -1)
    assert (message.coverage.valid, message.coverage.noun_coverage, message.coverage.unsupported_nouns) == (
        False,
        0.0,
        [],
    )
    assert message.timing.coverage_ms == pytest.approx(1)
    assert grounding_of(message).coverage is None


@given(captions)
def test_a_caption_comes_back_from_its_message(caption: Caption) -> None:
    message = caption_message(msg, caption, HEADER, camera="left", min_confidence=0.0)
    back = caption_of(message)
    assert {**vars(back), "timing": None} == {**vars(caption), "timing": None}
    assert vars(back.timing) == pytest.approx(vars(caption.timing), abs=1e-3)


def test_the_header_and_the_camera_go_into_the_message() -> None:
    message = caption_message(msg, shade_caption(9, 64, 48), HEADER, camera="left", min_confidence=0.0)
    assert message.header == HEADER
    assert message.camera == "left"
    assert (message.image_width, message.image_height) == (64, 48)
    assert message.format_version == CaptionMessage.FORMAT_VERSION


def test_times_are_milliseconds_in_the_message() -> None:
    timing = caption_message(msg, shade_caption(9, 64, 48), HEADER, camera="", min_confidence=0.0).timing
    assert timing.preprocess_ms == pytest.approx(1.0)
    assert timing.vision_ms == pytest.approx(2.0)
    assert timing.decode_ms == pytest.approx(3.0)
    assert timing.total_ms == pytest.approx(6.0)
    assert timing.steps == 3


@pytest.mark.parametrize(
    ("shade", "min_confidence", "status", "reason"),
    [
        (9, 0.0, CaptionMessage.STATUS_OK, ""),
        (9, 0.7, CaptionMessage.STATUS_OK, ""),
        (9, 0.9, CaptionMessage.STATUS_LOW_CONFIDENCE, "0.800 is below min_confidence (0.900)"),
        (UNSURE, 0.5, CaptionMessage.STATUS_LOW_CONFIDENCE, "0.100 is below min_confidence (0.500)"),
        (NOTHING_TO_SAY, 0.0, CaptionMessage.STATUS_NOTHING_FOUND, "nothing to say"),
        (NOTHING_TO_SAY, 1.0, CaptionMessage.STATUS_NOTHING_FOUND, "nothing to say"),
    ],
)
def test_the_status_follows_text_and_confidence(shade: int, min_confidence: float, status: int, reason: str) -> None:
    caption = shade_caption(shade, 64, 48)
    message = caption_message(msg, caption, HEADER, camera="", min_confidence=min_confidence)
    assert message.status == status
    assert reason in message.status_message
    assert message.text == caption.text


def test_a_sure_caption_of_an_image_without_detail_is_low() -> None:
    caption = Caption(**{**vars(shade_caption(9, 64, 48)), "shows_detail": False})
    message = caption_message(msg, caption, HEADER, camera="", min_confidence=0.0)
    assert (message.status, message.text) == (CaptionMessage.STATUS_LOW_CONFIDENCE, caption.text)
    assert "no detail" in message.status_message


def test_a_confidence_that_is_not_a_number_is_low() -> None:
    caption = Caption(**{**vars(shade_caption(9, 64, 48)), "confidence": math.nan})
    message = caption_message(msg, caption, HEADER, camera="", min_confidence=0.0)
    assert message.status == CaptionMessage.STATUS_LOW_CONFIDENCE


def test_an_message_without_text_says_why() -> None:
    message = message_without_text(msg, CaptionMessage.STATUS_STALE, "too old", HEADER, camera="left")
    assert (message.header, message.camera, message.status) == (HEADER, "left", CaptionMessage.STATUS_STALE)
    assert (message.status_message, message.text, len(message.words)) == ("too old", "", 0)
    assert (message.coverage.valid, message.coverage.reason) == (False, Coverage.REASON_NOT_CAPTIONED)
    assert message.format_version == CaptionMessage.FORMAT_VERSION


def test_every_status_has_its_number() -> None:
    constants = {name for name in dir(CaptionMessage) if name.startswith("STATUS_")}
    named = {f"STATUS_{status.name}": number for number, status in CAPTION_STATUSES.items()}
    assert named == {name: getattr(CaptionMessage, name) for name in constants}
