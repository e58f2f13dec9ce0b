"""Aggregate the scores of frames into a coverage report: SMArT's Table IV, by class and by sequence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from smart_caption_ros.grounding.assignment import CoverageResult
from smart_caption_ros.grounding.noun_coverage import NounCoverage
from smart_caption_ros.json_text import rounded
from smart_caption_ros.sources.source import GroundTruthObject

AREA_THRESHOLDS = (0.01, 0.03, 0.05, 0.1)
"""Shares of the image that an object's box must exceed to count (Table IV)."""

_LISTED = 20
_REMEMBERED_CAPTIONS = 1024


@dataclass
class _Mean:
    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


class CoverageStatistics:
    """Means over the frames of a sequence, or over all frames."""

    def __init__(self) -> None:
        self.scored_frames = 0
        self._coverage = {threshold: _Mean() for threshold in AREA_THRESHOLDS}
        self._noun_support = _Mean()

    def add(self, above: Mapping[float, CoverageResult], noun_support: float | None) -> None:
        self.scored_frames += 1
        for threshold, result in above.items():
            if result.coverage is not None:
                self._coverage[threshold].add(result.coverage)
        if noun_support is not None:
            self._noun_support.add(noun_support)

    @property
    def coverage(self) -> dict[float, float | None]:
        """By threshold; None if no frame has an object above it."""
        return {threshold: mean.value for threshold, mean in self._coverage.items()}

    @property
    def frames(self) -> dict[float, int]:
        """By threshold: number of frames with an object above it, over which the mean is taken."""
        return {threshold: mean.count for threshold, mean in self._coverage.items()}

    @property
    def noun_support(self) -> float | None:
        """None if no caption has a noun."""
        return self._noun_support.value

    @property
    def noun_support_frames(self) -> int:
        """Number of captions with a noun, over which the mean is taken."""
        return self._noun_support.count

    def to_json(self) -> dict[str, Any]:
        return {
            "coverage": {f"{threshold:g}": rounded(value, 6) for threshold, value in self.coverage.items()},
            "frames": {f"{threshold:g}": count for threshold, count in self.frames.items()},
            "noun_support": rounded(self.noun_support, 6),
            "noun_support_frames": self.noun_support_frames,
            "scored_frames": self.scored_frames,
        }


@dataclass(frozen=True)
class ClassStatistics:
    """Statistics of a class over the frames with an object of it above the smallest threshold."""

    class_name: str
    frames: int
    named: int
    similarity: float
    """Mean profit, 0 if no noun was assigned: the class's contribution to coverage."""

    @property
    def missed(self) -> int:
        return self.frames - self.named

    def to_json(self) -> dict[str, Any]:
        counts = {"frames": self.frames, "named": self.named, "missed": self.missed}
        return {**counts, "similarity": rounded(self.similarity, 6)}


@dataclass(frozen=True)
class NearMiss:
    """A noun that was assigned to a missed class, over the same frames as :class:`ClassStatistics`."""

    class_name: str
    noun: str
    frames: int
    similarity: float

    def to_json(self) -> dict[str, Any]:
        pair = {"class": self.class_name, "noun": self.noun, "frames": self.frames}
        return {**pair, "similarity": rounded(self.similarity, 6)}


@dataclass(frozen=True)
class CoverageReport:
    """The results of a benchmark."""

    overall: CoverageStatistics
    sequences: Mapping[str, CoverageStatistics]
    classes: tuple[ClassStatistics, ...]
    """Most often missed first."""
    near_misses: tuple[NearMiss, ...]
    """Most frequent first."""
    out_of_vocabulary_nouns: Mapping[str, int]
    """Nouns without a word vector, with the number of frames, most frequent first."""
    out_of_vocabulary_classes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values, numbers with 6 decimals; docs/coverage.md describes the layout."""
        return {
            **self.overall.to_json(),
            "sequences": {name: statistics.to_json() for name, statistics in self.sequences.items()},
            "classes": {statistics.class_name: statistics.to_json() for statistics in self.classes},
            "near_misses": [miss.to_json() for miss in self.near_misses[:_LISTED]],
            "out_of_vocabulary_nouns": dict(list(self.out_of_vocabulary_nouns.items())[:_LISTED]),
            "out_of_vocabulary_classes": list(self.out_of_vocabulary_classes),
        }


class CoverageTally:
    """Scores frames and keeps only sums, so that memory grows with the classes and nouns, not with the frames."""

    def __init__(self, coverage: NounCoverage) -> None:
        self._coverage = coverage
        # Captions of neighbouring video frames are often equal.
        self._nouns = lru_cache(_REMEMBERED_CAPTIONS)(coverage.finder.nouns)
        self._overall = CoverageStatistics()
        self._sequences: dict[str, CoverageStatistics] = {}
        self._classes: dict[str, _Mean] = {}
        self._named: Counter[str] = Counter()
        self._near_misses: dict[tuple[str, str], _Mean] = {}
        self._unknown_nouns: Counter[str] = Counter()
        self._unknown_classes: dict[str, None] = {}

    def add(self, sequence: str, caption: str, objects: Sequence[GroundTruthObject]) -> dict[float, CoverageResult]:
        """Score the caption of a frame and add the scores to the sums.

        Returns:
            By threshold of :data:`AREA_THRESHOLDS`: the score against the objects above it, if there are any.
        """
        nouns = self._nouns(caption)
        scored: dict[tuple[str, ...], CoverageResult] = {}

        def score(chosen: Sequence[GroundTruthObject]) -> CoverageResult:
            classes = tuple(target.class_name for target in chosen)
            if classes not in scored:
                scored[classes] = self._coverage.score_nouns(nouns, classes)
            return scored[classes]

        above = {}
        for threshold in AREA_THRESHOLDS:
            large = [target for target in objects if target.area_share > threshold]
            if large:
                above[threshold] = score(large)
        everything = score(objects)
        for statistics in (self._overall, self._sequences.setdefault(sequence, CoverageStatistics())):
            statistics.add(above, everything.noun_support)
        self._unknown_nouns.update(everything.out_of_vocabulary_nouns)
        self._unknown_classes.update(dict.fromkeys(everything.out_of_vocabulary_classes))
        if AREA_THRESHOLDS[0] in above:
            self._count_classes(above[AREA_THRESHOLDS[0]])
        return above

    def _count_classes(self, result: CoverageResult) -> None:
        matches = {match.class_index: match for match in result.matches}
        # By object, not by class: with `class_counts` one of two chairs may be named and the other one missed.
        named = {match.class_index for match in result.support}
        for index, name in zip(result.class_indices, result.classes, strict=True):
            match = matches.get(index)
            self._classes.setdefault(name, _Mean()).add(match.similarity if match else 0.0)
            if index in named:
                self._named[name] += 1
            elif match:
                self._near_misses.setdefault((name, match.noun.lemma), _Mean()).add(match.similarity)

    def report(self) -> CoverageReport:
        """Compute the report of all frames so far."""
        classes = [
            ClassStatistics(name, mean.count, self._named[name], mean.value or 0.0)
            for name, mean in self._classes.items()
        ]
        near_misses = [
            NearMiss(class_name, noun, mean.count, mean.value or 0.0)
            for (class_name, noun), mean in self._near_misses.items()
        ]
        unknown = sorted(self._unknown_nouns.items(), key=lambda item: (-item[1], item[0]))
        return CoverageReport(
            overall=self._overall,
            sequences=self._sequences,
            classes=tuple(
                sorted(classes, key=lambda statistics: (-statistics.missed, -statistics.frames, statistics.class_name))
            ),
            near_misses=tuple(sorted(near_misses, key=lambda miss: (-miss.frames, miss.class_name, miss.noun))),
            out_of_vocabulary_nouns=dict(unknown),
            out_of_vocabulary_classes=tuple(sorted(self._unknown_classes)),
        )
