"""Between records and messages nothing gets lost, and a stranger's numbers do no harm."""

import math
from dataclasses import replace

import pytest
from hypothesis import given

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from builtin_interfaces.msg import Time
from smart_caption_ros.msg import BoundingBox, CaptionWord, Coverage, GroundedNoun
from smart_caption_ros.msg import Caption as CaptionMessage
from std_msgs.msg import Header

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import CAPTION_STATUSES, COVERAGE_REASONS, from_message, to_message
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason
from tests.nodes.fake_captioner import shade_caption
from tests.records import nearly, records

pytestmark = pytest.mark.needs_ros

HEADER = Header(stamp=Time(sec=1_700_000_000, nanosec=123_456_789), frame_id="left_eye")
RECORD = CaptionRecord.of(shade_caption(9, 64, 48), camera="left")


@given(records())
def test_a_record_comes_back_from_its_message(record):
    seconds, nanoseconds = divmod(record.stamp_ns or 0, 10**9)
    header = Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=record.frame_id)
    message = to_message(msg, record, header)
    back = from_message(message, source=record.source)
    kept_aside = {name: getattr(back, name) for name in ("received_s", "received_monotonic_s", "robot", "name", "pose")}
    assert nearly(back, replace(record, **kept_aside), 1e-3)
    assert back.stamp_ns == record.stamp_ns


def test_the_message_has_the_header_as_it_was_and_times_in_milliseconds():
    message = to_message(msg, replace(RECORD, age_at_start_s=0.5, detection_wait_s=0.25, dropped=7), HEADER)
    assert message.header == HEADER
    assert (message.camera, message.format_version) == ("left", CaptionMessage.FORMAT_VERSION)
    timing = message.timing
    found = [timing.age_at_start_ms, timing.preprocess_ms, timing.vision_ms, timing.decode_ms, timing.total_ms]
    assert found == pytest.approx([500.0, 1.0, 2.0, 3.0, 6.0])
    assert (timing.detection_wait_ms, timing.dropped_frames, timing.steps) == (250.0, 7, 3)
    assert from_message(message).age_s == pytest.approx(0.756)


def test_an_image_that_was_not_captioned_says_why():
    record = CaptionRecord.without_caption(CaptionStatus.STALE, "too old", camera="left")
    message = to_message(msg, record, Header())
    assert (message.status, message.status_message) == (CaptionMessage.STATUS_STALE, "too old")
    assert (message.text, len(message.words), message.image_width) == ("", 0, 0)
    assert math.isnan(message.calibrated_confidence)
    assert (message.coverage.valid, message.coverage.reason) == (False, Coverage.REASON_NOT_CAPTIONED)
    back = from_message(message)
    assert (back.status, back.stamp_ns, back.age_s, back.grounding) == (CaptionStatus.STALE, None, None, None)


def test_a_message_of_a_stranger_becomes_a_record_that_is_whole():
    message = CaptionMessage(status=99, words=[CaptionWord(text="cup", box=BoundingBox(x1=math.nan))])
    message.nouns = [GroundedNoun(noun="cup", word_index=0, object_index=5), GroundedNoun(noun="dog", word_index=9)]
    message.coverage = Coverage(valid=True, reason=99, noun_coverage=math.nan, noun_support=math.inf)
    message.timing.age_at_start_ms = math.inf
    message.calibrated_confidence = math.nan
    record = from_message(message, camera="front")
    assert (record.camera, record.status, record.age_s) == ("front", CaptionStatus.ERROR, None)
    assert record.coverage_reason is CoverageReason.FAILED
    assert [(noun.text, noun.object_index) for noun in record.grounding.nouns] == [("cup", None)]
    assert (record.grounding.coverage, record.grounding.noun_support) == (None, None)
    assert record.caption.calibrated_confidence is None
    assert CaptionRecord.from_json(record.to_json()).caption.text == ""


@pytest.mark.parametrize(
    ("kind", "prefix", "numbers"),
    [(CaptionMessage, "STATUS_", CAPTION_STATUSES), (Coverage, "REASON_", COVERAGE_REASONS)],
)
def test_every_status_and_reason_has_its_number(kind, prefix, numbers):
    constants = {name: getattr(kind, name) for name in dir(kind) if name.startswith(prefix)}
    constants.pop("REASON_MESSAGE", None)
    assert {f"{prefix}{member.name}": number for number, member in numbers.items()} == constants
