"""The caption record: the status that a caption earns, and JSON that keeps all of it."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given

from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.json_text import json_text
from smart_caption_ros.record import FORMAT, CaptionRecord, CaptionStatus, CoverageReason, NounState
from tests.nodes.fake_captioner import NOTHING_TO_SAY, UNSURE, shade_caption
from tests.records import nearly, records

NOUN = GroundedNoun("shade", "shade", 0, None, 0.0)


@given(records())
def test_a_record_comes_back_from_its_json(record):
    values = json.loads(json_text(record.to_json()))
    back = CaptionRecord.from_json(values)
    assert nearly(back, replace(record, received_monotonic_s=back.received_monotonic_s), 0.051)
    assert back.stamp_ns == record.stamp_ns, "to the nanosecond"
    assert back.to_json() == values


def test_numbers_that_are_not_finite_and_half_pairs_are_no_part_of_the_json():
    caption = shade_caption(9, 64, 48)
    word = replace(caption.words[0], log_probability=-math.inf, box_xyxy=(math.nan,) * 4)
    caption = replace(caption, words=(word,), score=math.nan, confidence=math.inf)
    text = json_text(CaptionRecord.of(caption, name="caf\udce9.jpg").to_json())
    values = json.loads(text)
    assert values["words"][0] == {"text": word.text, "log_probability": None, "box_xyxy": None}
    assert (values["score"], values["confidence"], values["image"]) == (None, None, "caf\\udce9.jpg")
    back = CaptionRecord.from_json(values)
    assert math.isnan(back.caption.score)
    assert all(map(math.isnan, back.caption.words[0].box_xyxy))


@pytest.mark.parametrize(
    "change",
    [
        {"format": FORMAT - 1},
        {"text": None},
        {"nouns": [{"noun": "a", "lemma": "a", "word_index": 9, "object_index": None, "similarity": 0}]},
        {"nouns": [{"noun": "a", "lemma": "a", "word_index": 0, "object_index": 9, "similarity": 0}]},
        {"objects": [{"class_name": "cup"}]},
        {"objects": [3]},
        {"status": "good"},
        {"stamp": "soon"},
        {"pose": {"frame_id": "map", "position": [1, 2], "orientation": [0, 0, 0, 1]}},
        {"image_size": []},
    ],
)
def test_json_that_is_no_record_is_refused(change):
    with pytest.raises(ValueError, match=r"."):
        CaptionRecord.from_json({**CaptionRecord.of(shade_caption(9, 64, 48)).to_json(), **change})


@pytest.mark.parametrize(
    ("changes", "min_confidence", "status", "sentence"),
    [
        ({}, 0.0, CaptionStatus.OK, ""),
        ({}, 0.7, CaptionStatus.OK, ""),
        ({}, 0.9, CaptionStatus.LOW_CONFIDENCE, "0.800 is below min_confidence (0.900)"),
        ({"confidence": math.nan}, 0.0, CaptionStatus.LOW_CONFIDENCE, "nan"),
        ({"shows_detail": False}, 0.0, CaptionStatus.LOW_CONFIDENCE, "no detail"),
    ],
)
def test_the_status_follows_confidence_and_detail(changes, min_confidence, status, sentence):
    record = CaptionRecord.of(replace(shade_caption(9, 64, 48), **changes), min_confidence=min_confidence)
    assert record.status is status
    assert sentence in record.status_message


@pytest.mark.parametrize(
    ("shade", "status"), [(UNSURE, CaptionStatus.LOW_CONFIDENCE), (NOTHING_TO_SAY, CaptionStatus.NOTHING_FOUND)]
)
def test_a_caption_that_says_nothing_has_that_status(shade, status):
    assert CaptionRecord.of(shade_caption(shade, 64, 48), min_confidence=0.5).status is status


@pytest.mark.parametrize(
    ("grounding", "has_detector", "reason", "state"),
    [
        (None, True, CoverageReason.DISABLED, NounState.UNCHECKED),
        (Grounding((NOUN,), None, 0.0, (), (), (), 0.0), False, CoverageReason.DISABLED, NounState.UNCHECKED),
        (Grounding((NOUN,), None, 0.0, (), (), (), 0.0), True, CoverageReason.NO_OBJECTS, NounState.UNSUPPORTED),
        (Grounding((), 0.0, None, ("cup",), (), (), 0.0), True, CoverageReason.NO_NOUNS, NounState.UNSUPPORTED),
        (Grounding((NOUN,), 0.5, 0.0, ("cup",), (), (), 0.0), True, CoverageReason.NONE, NounState.UNSUPPORTED),
    ],
)
def test_a_record_says_why_coverage_was_not_measured(grounding, has_detector, reason, state):
    record = CaptionRecord.of(shade_caption(9, 64, 48), grounding, has_detector=has_detector)
    assert record.coverage_reason is reason
    assert bool(record.coverage_message) == (reason is not CoverageReason.NONE)
    assert record.state_of(NOUN) is state
    assert record.state_of(replace(NOUN, object_index=0)) in (NounState.SUPPORTED, state)


@pytest.mark.parametrize(
    ("stamp_s", "is_a_time_of_day"),
    [(1_790_000_000, True), (1_790_000_100, True), (None, False), (12, False), (1_790_100_000, False)],
)
def test_a_stamp_that_is_no_time_of_day_gives_way_to_the_time_of_reception(stamp_s, is_a_time_of_day):
    stamp_ns = None if stamp_s is None else stamp_s * 10**9
    record = CaptionRecord.of(shade_caption(9, 64, 48), stamp_ns=stamp_ns, received_s=1.79e9)
    assert record.time_ns == (stamp_ns if is_a_time_of_day else 1_790_000_000 * 10**9)
