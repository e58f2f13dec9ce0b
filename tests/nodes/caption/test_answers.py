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
from smart_caption_ros.nodes.caption.worker import Scene, caption_image
from smart_caption_ros.record import ACCEPT_ALL
from tests.nodes.fake_captioner import BREAKS_COVERAGE, FakeCaptioner, FakeCoverage, image_fields

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


def test_a_caption_goes_out_even_if_its_coverage_fails():
    message = answer(FakeCaptioner(), image(BREAKS_COVERAGE))
    assert (message.status, message.text) == (Caption.STATUS_OK, f"shade {BREAKS_COVERAGE}")
    assert not message.nouns
    assert not message.coverage.valid
    assert message.coverage.reason_message == "coverage failed: RuntimeError: the dictionary is on fire"


def test_times_count_the_decoding_of_the_message_and_the_work_up_to_the_caption():
    timing = answer(FakeCaptioner(), image(), age_s=None, clock=ticking(0.5)).timing
    assert timing.total_ms == pytest.approx(1000), "from the start of the work to the caption, without coverage"
    assert timing.preprocess_ms == pytest.approx(1 + 500), "the engine's own, and half a second for the message"
    assert timing.age_at_start_ms == 0


def test_a_stamp_a_little_in_the_future_is_no_error():
    assert answer(FakeCaptioner(), image(), age_s=-0.9).status == Caption.STATUS_OK


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


def test_an_image_that_differs_too_little_from_the_last_one_costs_the_engine_nothing():
    captioner, scene = FakeCaptioner(), Scene()
    for shade, is_captioned in ((100, True), (100, False), (109, False), (110, True), (101, False), (90, True)):
        assert (captioned(captioner, image(shade), scene=scene) is not None) == is_captioned
    assert captioner.shades == [100, 110, 90]


def test_a_malformed_or_old_image_is_answered_whether_the_scene_has_changed_or_not():
    scene = Scene()
    captioned(FakeCaptioner(), image(100), scene=scene)
    for broken, age_s, status in ((image(step=100), 0.0, Caption.STATUS_ERROR), (image(), 9.0, Caption.STATUS_STALE)):
        assert answer(FakeCaptioner(), broken, age_s=age_s, scene=scene).status == status


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (image(step=100), ["step", "100", "192"]),
        (image(encoding="x" * 1_000_000), ["unknown encoding"]),
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


def test_the_wait_for_detections_and_coverage_are_no_part_of_the_total():
    class SlowCoverage(FakeCoverage):
        def score(self, *given):
            time.sleep(0.2)
            return super().score(*given)

    model = Model(FakeCaptioner(), SlowCoverage())
    started_s = time.monotonic()
    expected = ExpectedDetections(DetectionBuffer(), 5, "", slop_s=0.0, until_s=started_s + 0.3)
    record = caption_image(model, ReceivedImage(image(), 5, started_s), age_s=0.5)
    _, message, _ = complete_record(record, HEADER, expected, model, ACCEPT_ALL)
    elapsed_ms = (time.monotonic() - started_s) * 1000
    timing = message.timing
    assert timing.total_ms < 250
    assert timing.total_ms + timing.detection_wait_ms == pytest.approx(300, abs=100), "since the image arrived"
    assert timing.coverage_ms >= 200
    steps_ms = timing.total_ms + timing.detection_wait_ms + timing.coverage_ms
    assert steps_ms == pytest.approx(elapsed_ms, abs=50), "together they are the time to the caption"
    assert from_message(message).age_s == pytest.approx(0.5 + elapsed_ms / 1000, abs=0.05)
