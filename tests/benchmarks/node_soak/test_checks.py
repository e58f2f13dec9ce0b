"""The checks of a soak find what is wrong, and nothing where nothing is."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from smart_caption_ros.msg import Caption

from benchmarks.node_soak.checks import check_answers, check_counts, check_memory, memory_slope_mb_per_minute
from benchmarks.node_soak.images import Answer, Template, frame_id
from benchmarks.node_soak.records import Answered, Counts, Record

pytestmark = pytest.mark.needs_ros

EXPECTED = {"a": SimpleNamespace(text="a cup", score=-1.0), "b": SimpleNamespace(text="a chair", score=-2.0)}
COUNTS = Counts(
    received=5, answered=3, answered_ok=2, dropped=1, passed_over=1, unchanged=0, lost=1, state="active",
)  # fmt: skip


def record():
    """Images of a cup and of a chair, one without data, and a message that is no image; the right answers."""
    kinds = [
        Template("good", b"", Answer.CAPTION, "a"),
        Template("good", b"", Answer.CAPTION, "b"),
        Template("empty", b"", Answer.ERROR),
        Template("random bytes", b"", Answer.NONE),
        Template("good", b"", Answer.CAPTION, "a"),
        Template("good", b"", Answer.CAPTION, "b"),
    ]
    answers = [
        Answered(frame_id(0), (0, 0), Caption.STATUS_OK, "a cup", -1.0),
        Answered(frame_id(1), (1, 0), Caption.STATUS_LOW_CONFIDENCE, "", -2.0),
        Answered(frame_id(2), (2, 0), Caption.STATUS_ERROR, "", 0.0),
    ]
    published = [(kind, (number, 0)) for number, kind in enumerate(kinds)]
    return Record(published=published, answers=answers, counts=[COUNTS])


def test_right_answers_have_no_problems():
    assert check_answers(record(), EXPECTED) == []
    assert check_counts(record()) == []


@pytest.mark.parametrize(
    ("place", "change", "problem"),
    [
        (0, {"frame_id": "camera"}, "no image has"),
        (0, {"stamp": (9, 9)}, "has the stamp"),
        (0, {"text": "a chair"}, "of another image"),
        (0, {"score": -1.5}, "of another image"),
        (0, {"status": Caption.STATUS_ERROR}, "has the status"),
        (2, {"status": Caption.STATUS_OK}, "has the status"),
        (1, {"text": "a chair"}, "has a text"),
        (2, {"text": "a cup"}, "has a text"),
        (1, {"frame_id": frame_id(0), "stamp": (0, 0)}, "answered twice"),
        (1, {"frame_id": frame_id(3), "stamp": (3, 0)}, "has the status"),
        (0, {"frame_id": frame_id(4), "stamp": (4, 0)}, "answered after"),
        (0, {"frame_id": frame_id(99)}, "no image has"),
        (1, {"faults": ("coverage.noun_support is nan",)}, "coverage.noun_support is nan"),
    ],
)
def test_a_wrong_answer_is_found(place, change, problem):
    wrong = record()
    wrong.answers[place] = replace(wrong.answers[place], **change)
    assert problem in " ".join(check_answers(wrong, EXPECTED))


def test_a_soak_without_captions_diagnostics_or_time_for_the_slope_fails():
    assert check_answers(Record(), EXPECTED) == ["no image was captioned"]
    assert check_counts(Record()) == ["the node published no diagnostics"]
    assert "too short" in check_memory(memory_slope_mb_per_minute([(0.0, 1.0), (1.0, 1.0)], 0.0), 1.0)[0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"answered": 2}, "do not add up"),
        ({"dropped": 2}, "do not add up"),
        ({"received": 30}, "images open"),
        ({"received": 6, "dropped": 2}, "were published"),
        ({"answered": 2, "dropped": 2}, "captions arrived"),
        ({"lost": 0}, "the count lost went from 1 to 0"),
    ],
)
def test_counts_that_do_not_add_up_are_found(change, problem):
    wrong = record()
    wrong.counts.append(replace(COUNTS, **change))
    assert problem in " ".join(check_counts(wrong))


def test_the_slope_of_the_memory_ignores_the_warm_up_and_single_high_samples():
    samples = [(float(second), 300.0 + 0.05 * second) for second in range(100)]
    samples[:20] = [(at_s, 100.0) for at_s, _ in samples[:20]]
    for place in (30, 60, 95):
        samples[place] = (float(place), 500.0)
    slope = memory_slope_mb_per_minute(samples, warm_up_s=20.0)
    assert slope == pytest.approx(3.0, abs=0.1)
    assert check_memory(slope, 3.5) == []
    assert "grows by 3.0" in check_memory(slope, 1.0)[0]
