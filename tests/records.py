"""Caption records for tests, without a model, and strategies for the parts of any record."""

import math

from hypothesis import strategies as st

from smart_caption_ros.captioning import Alternative, Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason, Pose

float32 = st.floats(allow_nan=False, allow_infinity=False, width=32)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.lists(texts, max_size=3).map(tuple)
shares = st.floats(0, 1, width=32)
durations = st.integers(0, 10**6).map(lambda ms: ms / 1000)
boxes = st.tuples(float32, float32, float32, float32)
captions = st.builds(
    Caption,
    text=texts,
    words=st.lists(st.builds(Word, texts, float32, boxes), min_size=2, max_size=4).map(tuple),
    score=float32,
    confidence=float32,
    calibrated_confidence=st.none() | shares,
    alternatives=st.lists(st.builds(Alternative, texts, float32), max_size=4).map(tuple),
    timing=st.builds(Timing, durations, durations, durations, durations, st.integers(0, 2**31)),
    image_size=st.tuples(st.integers(1, 10**4), st.integers(1, 10**4)),
    model=texts,
    engine=texts,
    objects=st.lists(
        st.builds(DetectedObject, texts, st.integers(-1, 2**31 - 1), float32, boxes), min_size=2, max_size=4
    ).map(tuple),
)
nouns = st.lists(
    st.builds(GroundedNoun, texts, texts, st.integers(0, 1), st.none() | st.integers(0, 1), shares), min_size=1
).map(tuple)
measured = st.builds(Grounding, nouns, shares, shares, names, names, names, durations)
not_measured = st.builds(Grounding, nouns, st.none(), st.none(), st.just(()), st.just(()), st.just(()), durations)
groundings = st.one_of(
    st.tuples(st.just(CoverageReason.NONE), measured),
    st.tuples(st.sampled_from(list(CoverageReason)[1:]), not_measured),
    st.tuples(st.just(CoverageReason.DISABLED), st.none()),
)
poses = st.builds(Pose, texts, st.tuples(float32, float32, float32), st.tuples(float32, float32, float32, float32))


@st.composite
def records(draw):
    reason, grounding = draw(groundings)
    return CaptionRecord(
        draw(captions),
        *draw(st.tuples(texts, texts, texts, texts)),
        status=draw(st.sampled_from(CaptionStatus)),
        status_message=draw(texts),
        received_s=draw(st.integers(0, 2**31)) + 0.5,
        stamp_ns=draw(st.none() | st.integers(1, 2**31 * 10**9 - 1)),
        frame_id=draw(texts),
        grounding=grounding,
        coverage_reason=reason,
        coverage_message=draw(texts),
        age_at_start_s=draw(st.none() | durations.filter(bool)),
        detection_wait_s=draw(durations),
        dropped=draw(st.integers(0, 2**32 - 1)),
        pose=draw(st.none() | poses),
    )


def nearly(one, other, tolerance):
    """Whether two values are equal but for the last decimals of their numbers."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=tolerance) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(nearly(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if hasattr(one, "__dataclass_fields__") and type(one) is type(other):
        return all(nearly(getattr(one, name), getattr(other, name), tolerance) for name in one.__dataclass_fields__)
    return one == other
