"""The HTML report of a coverage benchmark: table, plot, classes, and frames drawn as in SMArT's Fig. 2."""

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.evaluation.coverage_benchmark import CoverageComparison, Outcome, ScoredFrame
from smart_caption_ros.evaluation.report import AREA_THRESHOLDS, CoverageReport
from smart_caption_ros.grounding.assignment import CoverageResult
from smart_caption_ros.imaging import ImageError, resize_image
from smart_caption_ros.viewing import encode_picture
from smart_caption_ros.viewing.box_drawing import draw_boxes
from smart_caption_ros.viewing.colours import HIGHLIGHTS

PICTURE_WIDTH_PX = 560
_TEXT_PX = 26
_JPEG_QUALITY = 80
_CLASSES_SHOWN = 40
_NEAR_MISSES_SHOWN = 15
# Distinguishable with colour vision deficiency (Okabe and Ito, 2008) and on photographs.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#7a52cc", "#56b4e9", "#8c510a")
_TEMPLATE = Path(__file__).resolve().parent / "templates" / "coverage_page.html"


@dataclass(frozen=True)
class Span:
    """A piece of a caption, with its background colour if it has one, and a note that is shown on hovering."""

    text: str
    colour: str = ""
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A frame of the gallery, created by :func:`picture`."""

    name: str
    data_uri: str
    width: int
    height: int
    caption: tuple[Span, ...]
    coverage: float
    noun_support: float | None
    missed: tuple[str, ...]


def picture(scored: ScoredFrame) -> Picture:
    """Draw a frame: objects whose class the caption names in its colour, the others in grey. Raises ImageError."""
    image_bgr, result = scored.frame.read_image(), scored.result
    height, width = image_bgr.shape[:2]
    scale = min(1.0, PICTURE_WIDTH_PX / width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture_bgr = resize_image(image_bgr, size).copy()
    named = dict.fromkeys(match.class_name for match in result.support)
    colours = {name: HIGHLIGHTS[place % len(HIGHLIGHTS)] for place, name in enumerate(named)}
    without_scores = [
        DetectedObject(target.class_name, -1, math.nan, tuple(np.multiply(scale, target.box_xyxy).tolist()))
        for target in scored.objects
    ]
    draw_boxes(picture_bgr, (), without_scores, colours, _TEXT_PX)
    jpeg = encode_picture(picture_bgr, ".jpg", _JPEG_QUALITY)
    hexadecimal = {name: "#{:02x}{:02x}{:02x}".format(*rgb) for name, rgb in colours.items()}
    return Picture(
        name=scored.frame.name,
        data_uri="data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii"),
        width=size[0],
        height=size[1],
        caption=_spans(scored.caption, result, hexadecimal),
        coverage=result.coverage or 0.0,
        noun_support=result.noun_support,
        missed=result.missed_classes,
    )


def coverage_page(comparison: CoverageComparison, on_unreadable: Callable[[str], None]) -> str:
    """Render the page, one file without references to others.

    Args:
        on_unreadable: called with a sentence for each frame that is left out of the gallery, because its image cannot
            be read.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def pictures(frames: Sequence[ScoredFrame]) -> Iterator[Picture]:
        for scored in frames:
            try:
                yield picture(scored)
            except ImageError as error:  # with captions from a file, images are read here for the first time
                on_unreadable(f"{scored.frame.image_path} is not shown in the report: {error}")

    outcomes = comparison.outcomes
    colours = [_COLOURS[number % len(_COLOURS)] for number in range(len(outcomes))]
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATE.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = lambda value: "-" if value is None else f"{value:.3f}"
    environment.filters["percent"] = lambda value: f"{100 * value:g} %"
    every = "every frame" if comparison.every == 1 else f"1 of {comparison.every}"
    return environment.get_template(_TEMPLATE.name).render(
        title="Noun coverage",
        facts={
            "data": f"{comparison.data}, {every}",
            "objects": comparison.objects,
            "captions": ", ".join(outcome.label for outcome in outcomes),
            "word vectors": comparison.word_vectors,
            "pipeline": comparison.pipeline,
        },
        columns=list(zip(outcomes, colours, strict=True)),
        thresholds=AREA_THRESHOLDS,
        sequences=list(dict.fromkeys(name for outcome in outcomes for name in outcome.report.sequences)),
        plot=_plot([outcome.report for outcome in outcomes]),
        classes=_class_rows(outcomes, colours),
        near_misses=_NEAR_MISSES_SHOWN,
        classes_shown=_CLASSES_SHOWN,
        pictures=pictures,
    )


def _spans(caption: str, result: CoverageResult, colours: Mapping[str, str]) -> tuple[Span, ...]:
    spans, at = [], 0
    for match in sorted(result.support, key=lambda match: match.noun.start):
        spans.append(Span(caption[at : match.noun.start]))
        note = f"{match.class_name}, similarity {match.similarity:.2f}"
        spans.append(Span(caption[match.noun.start : match.noun.end], colours[match.class_name], note))
        at = match.noun.end
    spans.append(Span(caption[at:]))
    return tuple(span for span in spans if span.text)


def _plot(reports: Sequence[CoverageReport]) -> dict[str, Any]:
    """Lay out coverage (linear from 0, ticks at tenths) against the area threshold (linear), in SVG units.

    Returns:
        The sizes of the plot, ``ticks_x`` and ``ticks_y`` (place and label), and ``lines``: for each report its points,
        x, y and the value as text.
    """
    left, right, top, bottom = 52, 620, 16, 270
    values = [value for report in reports for value in report.overall.coverage.values() if value is not None]
    highest = min(10, int(10 * max(values, default=1.0)) + 1)

    def x(threshold: float) -> float:
        return round(left + (right - left - 30) * threshold / AREA_THRESHOLDS[-1], 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * 10 * value / highest, 1)

    lines = [
        [
            (x(threshold), y(value), f"{value:.3f}")
            for threshold, value in report.overall.coverage.items()
            if value is not None
        ]
        for report in reports
    ]
    return {
        "width": 640,
        "height": 320,
        "left": left,
        "right": right,
        "bottom": bottom,
        "ticks_x": [(x(threshold), f"> {100 * threshold:g} %") for threshold in AREA_THRESHOLDS],
        "ticks_y": [(y(tenth / 10), f"{tenth / 10:.1f}") for tenth in range(highest + 1)],
        "lines": lines,
    }


def _class_rows(outcomes: Sequence[Outcome], colours: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of all classes, most frequent first.

    Each has the class's ``name``, its largest number of ``frames``, and ``bars``: for each column with the class the
    colour, the share of the frames whose caption names it, and the mean similarity.
    """
    rows: dict[str, dict[str, Any]] = {}
    for outcome, colour in zip(outcomes, colours, strict=True):
        for class_ in outcome.report.classes:
            row = rows.setdefault(class_.class_name, {"name": class_.class_name, "frames": 0, "bars": []})
            row["frames"] = max(row["frames"], class_.frames)
            row["bars"].append((colour, class_.named / class_.frames, class_.similarity))
    return sorted(rows.values(), key=lambda row: (-row["frames"], row["name"]))
