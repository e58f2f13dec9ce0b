"""The checks of a soak; each returns the problems that it found, one sentence each."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.stats import theilslopes
from smart_caption_ros.msg import Caption

from benchmarks.node_soak.images import Answer, Stamp, Template, number_of
from benchmarks.node_soak.records import Answered, Counts, Record
from smart_caption_ros.captioning import Caption as ExpectedCaption

_MAX_SCORE_DIFFERENCE = 1e-3
_MAX_IN_PROGRESS = 11  # waiting for detections, in the engine, in the mailbox, and between two counts
_MOST_LISTED = 3

_CAPTIONED = (Caption.STATUS_OK, Caption.STATUS_LOW_CONFIDENCE, Caption.STATUS_NOTHING_FOUND)
_STATUSES = {
    Answer.CAPTION: (*_CAPTIONED, Caption.STATUS_STALE),
    Answer.CAPTION_OR_ERROR: (*_CAPTIONED, Caption.STATUS_ERROR),
    Answer.ERROR: (Caption.STATUS_ERROR, Caption.STATUS_STALE),
    Answer.NONE: (),
}


def check_answers(record: Record, expected: Mapping[str, ExpectedCaption]) -> list[str]:
    """Check that each caption has the header of one image, once and in their order, and is the captioner's caption."""
    problems: list[str] = []
    seen: set[int] = set()
    newest = -1
    for answer in record.answers:
        number = number_of(answer.frame_id)
        if number is None or number >= len(record.published):
            problems.append(f"a caption has the frame id {answer.frame_id!r}, which no image has")
            continue
        if number in seen:
            problems.append(f"the image {number} was answered twice")
        elif number < newest:
            problems.append(f"the image {number} was answered after the image {newest}")
        seen.add(number)
        newest = max(newest, number)
        problems += _check_answer(number, answer, *record.published[number], expected)
    if not any(answer.status == Caption.STATUS_OK for answer in record.answers):
        problems.append("no image was captioned")
    return _shortened(problems)


def check_counts(record: Record) -> list[str]:
    """Check that the counts of the diagnostics add up, in every message and at the end."""
    problems: list[str] = []
    if not record.counts:
        return ["the node published no diagnostics"]
    for before, after in pairwise(record.counts):
        names = ("received", "answered", "dropped", "passed_over", "unchanged", "lost")
        problems += [
            f"the count {name} went from {getattr(before, name)} to {getattr(after, name)}"
            for name in names
            if getattr(after, name) < getattr(before, name)
        ]
    for counts in record.counts:
        if not 0 <= counts.in_progress <= _MAX_IN_PROGRESS:
            problems.append(f"the counts leave {counts.in_progress} images open while images arrive: {_sum(counts)}")
    last = record.counts[-1]
    if last.in_progress:
        problems.append(f"at the end the counts do not add up: {_sum(last)}")
    if last.answered < len(record.answers):
        problems.append(f"{len(record.answers)} captions arrived, and the node counted {last.answered} answers")
    images = sum(template.answer is not Answer.NONE for template, _ in record.published)
    if last.received > images:
        problems.append(f"the node received {last.received} images, and {images} were published")
    return _shortened(problems)


def memory_slope_mb_per_minute(samples: Sequence[tuple[float, float]], warm_up_s: float) -> float | None:
    """Fit the growth of memory after the warm-up.

    The slope is the Theil-Sen estimator, the median of the slopes between all pairs of samples, which single high
    samples, such as while an overlay is drawn, do not change.

    Args:
        samples: time in seconds and memory in 1e6 bytes.
        warm_up_s: earlier samples are left out.

    Returns:
        None with fewer than three samples.
    """
    kept = [sample for sample in samples if sample[0] >= warm_up_s]
    if len(kept) < 3:
        return None
    times_s, memory = np.array(kept).T
    return float(theilslopes(memory, times_s).slope) * 60.0


def check_memory(slope_mb_per_minute: float | None, limit_mb_per_minute: float) -> list[str]:
    """Check the growth of the resident memory."""
    if slope_mb_per_minute is None:
        return ["the soak was too short to measure the growth of the memory"]
    if slope_mb_per_minute > limit_mb_per_minute:
        return [
            f"the resident memory grows by {slope_mb_per_minute:.2f} MB a minute, more than {limit_mb_per_minute:g} MB"
        ]
    return []


def _check_answer(
    number: int, answer: Answered, template: Template, stamp: Stamp, expected: Mapping[str, ExpectedCaption]
) -> list[str]:
    what = f"the answer to the image {number} ({template.kind})"
    if answer.faults:
        return [f"{what} holds what nobody can read: {answer.faults[0]}"]
    if answer.stamp != stamp:
        return [f"{what} has the stamp {answer.stamp}, and the image has {stamp}"]
    if answer.status not in _STATUSES[template.answer]:
        return [f"{what} has the status {answer.status}"]
    if answer.status != Caption.STATUS_OK:
        return [f"{what} has a text and the status {answer.status}"] if answer.text else []
    right = expected[template.picture]
    if answer.text != right.text or abs(answer.score - right.score) > _MAX_SCORE_DIFFERENCE:
        return [
            f"{what} says {answer.text!r} with the score {answer.score:.4f}, and the captioner says {right.text!r} "
            f"with the score {right.score:.4f}: it is of another image"
        ]
    return []


def _sum(counts: Counts) -> str:
    return (
        f"{counts.received} received, {counts.answered} answered, {counts.dropped} dropped, "
        f"{counts.passed_over} passed over, {counts.unchanged} unchanged"
    )


def _shortened(problems: list[str]) -> list[str]:
    left = len(problems) - _MOST_LISTED
    return problems if left <= 0 else [*problems[:_MOST_LISTED], f"and {left} more of this kind"]
