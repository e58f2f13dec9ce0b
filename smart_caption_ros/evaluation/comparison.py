"""Coverage benchmarks of several models or caption files on the same frames, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smart_caption_ros.evaluation.coverage_benchmark import Outcome, ScoredFrame, to_json
from smart_caption_ros.evaluation.page import Column, Picture, coverage_page, picture
from smart_caption_ros.imaging import ImageError


@dataclass(frozen=True)
class CoverageComparison:
    """Outcomes of one or more models or caption files."""

    outcomes: Sequence[Outcome]
    data: str
    every: int
    objects: str
    word_vectors: str
    pipeline: str

    @property
    def labels(self) -> list[str]:
        """One name per outcome; equal names are distinguished by their folders or files."""
        names = [outcome.label for outcome in self.outcomes]
        return [
            name if names.count(name) == 1 else f"{name} ({outcome.source})"
            for name, outcome in zip(names, self.outcomes, strict=True)
        ]

    def skipped(self) -> list[str]:
        """Return a sentence for each kind of data that was left out."""
        return [
            sentence if len(self.outcomes) == 1 else f"{label}: {sentence}"
            for label, outcome in zip(self.labels, self.outcomes, strict=True)
            for sentence in outcome.issues.sentences()
        ]

    def to_json(self) -> dict[str, Any]:
        results = [
            {"label": label, **to_json(outcome)} for label, outcome in zip(self.labels, self.outcomes, strict=True)
        ]
        return {
            **(results[0] if len(results) == 1 else {"results": results}),
            **{name: getattr(self, name) for name in ("data", "every", "objects", "word_vectors", "pipeline")},
        }

    def page(self, on_unreadable: Callable[[str], None]) -> str:
        """Render the HTML report.

        Args:
            on_unreadable: called with a sentence for each frame that is left out of the gallery, because its image
                cannot be read.
        """
        columns = [
            Column(
                label=label,
                facts={key.replace("_", " "): value for key, value in outcome.captions.items()},
                report=outcome.report,
                skipped=outcome.issues.sentences(),
                best=_pictures(outcome.best, on_unreadable),
                worst=_pictures(outcome.worst, on_unreadable),
            )
            for label, outcome in zip(self.labels, self.outcomes, strict=True)
        ]
        shown = {
            "data": f"{self.data}, every frame" if self.every == 1 else f"{self.data}, 1 of {self.every}",
            "objects": self.objects,
            "captions": ", ".join(self.labels),
            "word vectors": self.word_vectors,
            "pipeline": self.pipeline,
        }
        return coverage_page("Noun coverage", shown, columns)


def _pictures(frames: Sequence[ScoredFrame], on_unreadable: Callable[[str], None]) -> list[Picture]:
    """Draw frames; with captions from a file, an image is read here for the first time and may be unreadable."""
    pictures = []
    for scored in frames:
        try:
            image_bgr = scored.frame.read_image()
        except ImageError as error:
            on_unreadable(f"{scored.frame.image_path} is not shown in the report: {error}")
            continue
        pictures.append(picture(scored.frame.name, image_bgr, scored.objects, scored.caption, scored.result))
    return pictures
