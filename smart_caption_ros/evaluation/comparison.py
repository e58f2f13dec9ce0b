"""Coverage benchmarks of several models or caption files on the same frames, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from smart_caption_ros.evaluation.coverage_benchmark import Outcome


@dataclass(frozen=True)
class CoverageComparison:
    """Outcomes of one or more models or caption files, with distinct labels; see :func:`distinguished`."""

    outcomes: Sequence[Outcome]
    data: str
    every: int
    objects: str
    word_vectors: str
    pipeline: str

    def skipped(self) -> list[str]:
        """Return a sentence for each kind of data that was left out."""
        return [
            sentence if len(self.outcomes) == 1 else f"{outcome.label}: {sentence}"
            for outcome in self.outcomes
            for sentence in outcome.issues.sentences()
        ]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values; docs/coverage.md describes the layout."""
        results = [
            {
                "label": outcome.label,
                **outcome.report.to_json(),
                "skipped": outcome.issues.to_json(),
                "captions": dict(outcome.captions),
            }
            for outcome in self.outcomes
        ]
        return {
            **(results[0] if len(results) == 1 else {"results": results}),
            **{name: getattr(self, name) for name in ("data", "every", "objects", "word_vectors", "pipeline")},
        }


def distinguished(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Add folder or file to the labels that are equal."""
    labels = [outcome.label for outcome in outcomes]
    return [
        replace(outcome, label=f"{outcome.label} ({outcome.source})") if labels.count(outcome.label) > 1 else outcome
        for outcome in outcomes
    ]
