"""Every image message gets an answer: text where that is possible, a status and a sentence where not."""

import array
import time
from dataclasses import replace
from itertools import count

import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import Caption
from std_msgs.msg import Header

from smart_caption_ros.caption_messages import from_message, stamp_ns
from smart_caption_ros.nodes.caption.detection_buffer import DetectionBuffer, ExpectedDetections
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.publisher import complete_record
from smart_caption_ros.nodes.caption.records import ReceivedImage
from smart_caption_ros.nodes.caption.worker import caption_image
from smart_caption_ros.record import ACCEPT_ALL
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields

HEADER = Header(stamp=Time(sec=12, nanosec=34), frame_id="eye")


def captioned(captioner, message, **options):
    model = Model(captioner, FakeCoverage())
    image = ReceivedImage(message, stamp_ns(message.header), 0.0)
    return caption_image(model, image, **{"age_s": 0.0, "max_age_s": 1.0, **options})


def answer(captioner, message, **options):
    record = captioned(captioner, message, **options)
    model = Model(captioner, FakeCoverage())
    expected = ExpectedDetections(DetectionBuffer(), stamp_ns(message.header), message.header.frame_id, slop_s=0.0)
    return complete_record(record, message.header, expected, model, ACCEPT_ALL)[1]


def image(shade=100, **changes):
    return Image(header=HEADER, **image_fields(shade, **changes))


def ticking(step_s):
    ticks = count()
    return lambda: next(ticks) * step_s


def test_times_count_the_decoding_of_the_message_and_the_work_up_to_the_caption():
    timing = answer(FakeCaptioner(), image(), age_s=None, clock=ticking(0.5)).timing
    assert timing.total_ms == pytest.approx(1000), "from the start of the work to the caption, without coverage"
    assert timing.preprocess_ms == pytest.approx(1 + 500), "the engine's own, and half a second for the message"
    assert timing.age_at_start_ms == 0


@pytest.mark.parametrize("score", ["high", RuntimeError("y" * 1_000_000)])
def test_whatever_an_engine_gives_or_raises_the_answer_is_a_short_error(score):
    class Broken(FakeCaptioner):
        def caption(self, image_bgr):
            if isinstance(score, Exception):
                raise score
            return replace(super().caption(image_bgr), score=score)

    message = answer(Broken(), image())
    assert (message.status, message.header) == (Caption.STATUS_ERROR, HEADER)
    assert len(message.status_message) < 300


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (image(step=100), ["step", "100", "192"]),
        (CompressedImage(header=HEADER, format="x" * 1_000_000, data=array.array("B", b"not a jpeg")), ["decode"]),
        (image(encoding="bgr\x1b]0;title\x07\n8"), [r"\x1b]0;title\x07"]),
    ],
)
def test_a_malformed_image_gets_a_short_error_that_names_the_fault(broken, words):
    captioner = FakeCaptioner()
    message = answer(captioner, broken)
    assert (message.status, message.text, message.header) == (Caption.STATUS_ERROR, "", HEADER)
    assert all(word in message.status_message for word in words), message.status_message
    assert message.status_message.isprintable()
    assert len(message.status_message) < 700
    assert not captioner.shades


def test_the_wait_for_detections_is_no_part_of_the_total():
    model, until_s = Model(FakeCaptioner(), FakeCoverage()), time.monotonic() + 0.2
    expected = ExpectedDetections(DetectionBuffer(), 5, "", slop_s=0.0, until_s=until_s)
    record = caption_image(model, ReceivedImage(image(), 5, 0.0), age_s=0.5, clock=ticking(0.0))
    _, message, _ = complete_record(record, HEADER, expected, model, ACCEPT_ALL)
    timing = message.timing
    assert (timing.total_ms, timing.detection_wait_ms > 0) == (0, True)
    assert from_message(message).age_s == pytest.approx(0.5 + (timing.detection_wait_ms + timing.coverage_ms) / 1000)
