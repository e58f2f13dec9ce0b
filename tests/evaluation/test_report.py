"""The figures of a benchmark against their definition, written out again without running sums."""

import json
from dataclasses import dataclass, replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.evaluation.report import AREA_THRESHOLDS, CoverageTally
from smart_caption_ros.grounding import NounCoverage


@dataclass(frozen=True)
class Target:
    class_name: str
    area_share: float


CAPTIONS = ["", "a dog on a couch", "a cup and a chair near a table", "two giraffes", "a man with a phone"]
CLASSES = ["dog", "couch", "cup", "chair", "dining table", "giraffe", "person"]
SHARES = [0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.2, 1.0]
TARGETS = st.builds(Target, st.sampled_from(CLASSES), st.sampled_from(SHARES))
FRAMES = st.lists(
    st.tuples(st.sampled_from(["000000", "000001"]), st.sampled_from(CAPTIONS), st.lists(TARGETS, max_size=5)),
    max_size=8,
)


def mean(values):
    return fmean(values) if values else None


@settings(max_examples=15)
@given(FRAMES)
def test_figures_are_the_means_over_the_frames_that_have_such_objects(coverage, frames):
    tally = CoverageTally(coverage)
    for sequence, caption, targets in frames:
        tally.add(sequence, caption, targets)
    report = tally.report()
    parts = [(report.overall, frames)]
    parts += [(figures, [frame for frame in frames if frame[0] == name]) for name, figures in report.sequences.items()]
    assert set(report.sequences) == {sequence for sequence, _, _ in frames}
    for figures, members in parts:
        assert figures.scored_frames == len(members)
        for threshold in AREA_THRESHOLDS:
            scores = []
            for _, caption, targets in members:
                classes = [target.class_name for target in targets if target.area_share > threshold]
                if classes:
                    scores.append(coverage.score(caption, classes).coverage or 0.0)
            assert figures.frames[threshold] == len(scores)
            assert figures.coverage[threshold] == pytest.approx(mean(scores))
        supports = [
            coverage.score(caption, [target.class_name for target in targets]) for _, caption, targets in members
        ]
        known = [result.noun_support for result in supports if result.noun_support is not None]
        assert (figures.noun_support, figures.noun_support_frames) == (pytest.approx(mean(known)), len(known))
        counts = list(figures.frames.values())
        assert counts == sorted(counts, reverse=True)
    json.dumps(report.to_json(), allow_nan=False)


@settings(max_examples=15)
@given(FRAMES)
def test_classes_and_near_misses_add_up_to_the_assignments(coverage, frames):
    tally = CoverageTally(coverage)
    results = [tally.add(*frame).get(AREA_THRESHOLDS[0]) for frame in frames]
    report = tally.report()
    for statistics in report.classes:
        there = [result for result in results if result is not None and statistics.class_name in result.classes]
        assert statistics.frames == len(there)
        assert statistics.missed == sum(statistics.class_name in result.missed_classes for result in there)
        profits = [
            match.similarity
            for result in there
            for match in result.matches
            if match.class_name == statistics.class_name
        ]
        assert statistics.similarity == pytest.approx(sum(profits) / len(there))
    for near in report.near_misses:
        pairs = [
            match.similarity
            for result in results
            if result is not None and near.class_name in result.missed_classes
            for match in result.matches
            if (match.class_name, match.noun.lemma) == (near.class_name, near.noun)
        ]
        assert (near.frames, near.similarity) == (len(pairs), pytest.approx(fmean(pairs)))
    missed = [class_.missed for class_ in report.classes]
    assert missed == sorted(missed, reverse=True)


def test_a_class_is_no_near_miss_of_itself_where_one_of_its_objects_is_named(coverage):
    counting = NounCoverage(coverage.finder, coverage.vectors, replace(coverage.options, class_counts=True))
    tally = CoverageTally(counting)
    tally.add("000000", "a chair next to a table", [Target("chair", 0.3), Target("chair", 0.2)])
    report = tally.report()
    assert [(statistics.class_name, statistics.frames, statistics.named) for statistics in report.classes] == [
        ("chair", 2, 1)
    ]
    assert [(near_miss.class_name, near_miss.noun) for near_miss in report.near_misses] == [("chair", "table")]
