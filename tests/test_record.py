"""The caption record: the status that a caption earns, and JSON that keeps all of it."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.json_text import json_text
from smart_caption_ros.record import FORMAT, CaptionRecord, CaptionStatus, CoverageReason, NounState, Trust
from tests.nodes.fake_captioner import NOTHING_TO_SAY, shade_caption
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
        {"steps": math.inf},
        {"calibrated_confidence": "high"},
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
    with pytest.raises(ValueError, match="not a caption record"):
        CaptionRecord.from_json([change])


@pytest.mark.parametrize(
    ("changes", "minimum", "refusal"),
    [
        ({}, 0.0, ""),
        ({"calibrated_confidence": 0.7}, 0.7, ""),
        ({"calibrated_confidence": 0.1}, 0.0, ""),
        (
            {"calibrated_confidence": 0.6},
            0.7,
            "its calibrated confidence 0.600 is below min_calibrated_confidence (0.7",
        ),
        ({"calibrated_confidence": None}, 0.7, "min_calibrated_confidence is 0.7, and the bundle m cannot say"),
        ({"confidence": math.nan}, 0.0, "its confidence is not a number"),
        ({"shows_detail": False, "calibrated_confidence": 0.9}, 0.0, "the image shows next to no detail"),
    ],
)
def test_a_caption_is_refused_by_its_calibrated_confidence_or_an_image_without_detail(changes, minimum, refusal):
    caption = replace(shade_caption(9, 64, 48), **changes)
    record = CaptionRecord.of(caption, trust=Trust(minimum))
    if not refusal:
        assert (record.status, record.status_message, record.caption) == (CaptionStatus.OK, "", caption)
        return
    assert record.status is CaptionStatus.LOW_CONFIDENCE
    assert record.status_message.startswith(f'"shade 9" is refused: {refusal}')
    assert (record.caption.text, record.caption.words, record.caption.alternatives) == ("", (), ())
    assert (record.caption.score, record.caption.objects) == (caption.score, caption.objects)


def test_a_caption_without_words_is_nothing_found_at_any_minimum():
    record = CaptionRecord.of(shade_caption(NOTHING_TO_SAY, 64, 48), trust=Trust(0.5, lists_objects=True))
    assert (record.status, record.caption.text) == (CaptionStatus.NOTHING_FOUND, "")


def refused(*classes, lists_objects):
    """The record of a refused caption of an image with objects of these classes."""
    objects = tuple(DetectedObject(name, -1, 0.5, (1.0, 2.0, 3.0, 4.0)) for name in classes)
    caption = replace(shade_caption(9, 64, 48), calibrated_confidence=0.6, objects=objects)
    coverage = 0.0 if classes else None
    grounding = Grounding((NOUN,), coverage, 0.0, tuple(dict.fromkeys(classes)), ("shade",), ("shade",), 0.5)
    return CaptionRecord.of(caption, grounding, trust=Trust(0.7, lists_objects))


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([], ""),
        (["dog"], "a dog"),
        (["umbrella", "dog"], "an umbrella and a dog"),
        (["chair", "dining table", "chair", "person"], "a chair, a dining table and a person"),
        (["skis", "bus", "wine glass", "scissors"], "skis, a bus, a wine glass and scissors"),
    ],
)
def test_the_objects_can_be_listed_in_place_of_a_refused_caption(classes, text):
    record = refused(*classes, lists_objects=True)
    caption, grounding = record.caption, record.grounding
    assert (record.status, caption.text) == (CaptionStatus.LOW_CONFIDENCE, text)
    assert all(math.isnan(word.log_probability) for word in caption.words)
    words = [word.text for word in caption.words]
    for noun in grounding.nouns:
        assert words[noun.word_index :][: len(noun.text.split())] == noun.text.split()
        assert noun.object_index == classes.index(noun.text)
    assert [noun.text for noun in grounding.nouns] == list(dict.fromkeys(classes))
    assert grounding.coverage == (1.0 if classes else None)
    assert record.coverage_reason is (CoverageReason.NONE if classes else CoverageReason.NO_OBJECTS)
    back = CaptionRecord.from_json(json.loads(json_text(record.to_json())))
    assert (back.caption.text, back.grounding) == (text, grounding)


def test_a_refused_caption_covers_nothing_and_another_program_may_list_its_objects():
    silent = refused("dog", "cup", "dog", lists_objects=False)
    assert silent.grounding == Grounding((), 0.0, None, ("dog", "cup"), (), (), 0.5)
    assert silent.coverage_reason is CoverageReason.NO_NOUNS
    listing = Trust(lists_objects=True)
    listed = silent.judged(listing)
    assert (listed.caption.text, listed.status_message) == ("a dog and a cup", silent.status_message)
    assert listed.judged(listing) is listed
    assert silent.judged(Trust(0.9)) is silent


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
