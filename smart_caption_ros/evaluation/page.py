"""The HTML report of a coverage benchmark: table, plot, classes, and frames drawn as in SMArT's Fig. 2."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.evaluation.report import AREA_THRESHOLDS, CoverageReport
from smart_caption_ros.grounding.assignment import CoverageResult
from smart_caption_ros.imaging import resize_image
from smart_caption_ros.viewing import encode_picture
from smart_caption_ros.viewing.box_drawing import DrawnObject, draw_boxes
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
class _Scaled:
    class_name: str
    box_xyxy: tuple[float, ...]


@dataclass(frozen=True)
class Span:
    """A piece of a caption; on its colour if it has one."""

    text: str
    colour: str = ""
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A frame of the gallery; made by :func:`picture`."""

    name: str
    data_uri: str
    width: int
    height: int
    caption: tuple[Span, ...]
    coverage: float
    noun_support: float | None
    missed: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """The results of one bundle or one file of captions."""

    label: str
    facts: Mapping[str, Any]
    report: CoverageReport
    skipped: Sequence[str]
    """One sentence for each kind of dataset issue."""
    best: Sequence[Picture]
    worst: Sequence[Picture]


def picture(
    name: str,
    image_bgr: NDArray[np.uint8],
    objects: Sequence[DrawnObject],
    caption: str,
    result: CoverageResult,
) -> Picture:
    """Draw a frame, uint8 (H, W, 3): objects whose class the caption names in its colour, the others in grey."""
    height, width = image_bgr.shape[:2]
    scale = min(1.0, PICTURE_WIDTH_PX / width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture_bgr = resize_image(image_bgr, size).copy()
    named = dict.fromkeys(match.class_name for match in result.support)
    colours = {name: HIGHLIGHTS[place % len(HIGHLIGHTS)] for place, name in enumerate(named)}
    scaled = [_Scaled(target.class_name, tuple(scale * value for value in target.box_xyxy)) for target in objects]
    draw_boxes(picture_bgr, (), scaled, colours, _TEXT_PX)
    jpeg = encode_picture(picture_bgr, ".jpg", _JPEG_QUALITY)
    return Picture(
        name=name,
        data_uri="data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii"),
        width=size[0],
        height=size[1],
        caption=_spans(caption, result, {name: "#{:02x}{:02x}{:02x}".format(*rgb) for name, rgb in colours.items()}),
        coverage=result.coverage or 0.0,
        noun_support=result.noun_support,
        missed=result.missed_classes,
    )


def coverage_page(title: str, facts: Mapping[str, str], columns: Sequence[Column]) -> str:
    """Render the page, one file without references to others."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    colours = [_COLOURS[number % len(_COLOURS)] for number in range(len(columns))]
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATE.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = lambda value: "-" if value is None else f"{value:.3f}"
    environment.filters["percent"] = lambda value: f"{100 * value:g} %"
    return environment.get_template(_TEMPLATE.name).render(
        title=title,
        facts=facts,
        columns=list(zip(columns, colours, strict=True)),
        thresholds=AREA_THRESHOLDS,
        sequences=list(dict.fromkeys(name for column in columns for name in column.report.sequences)),
        plot=_plot([column.report for column in columns]),
        classes=_class_rows(columns, colours),
        near_misses=_NEAR_MISSES_SHOWN,
        classes_shown=_CLASSES_SHOWN,
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


def _class_rows(columns: Sequence[Column], colours: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of all classes, most frequent first.

    Each has the class's ``name``, its largest number of ``frames``, and ``bars``: for each column with the class the
    colour, the share of the frames whose caption names it, and the mean similarity.
    """
    rows: dict[str, dict[str, Any]] = {}
    for column, colour in zip(columns, colours, strict=True):
        for class_ in column.report.classes:
            row = rows.setdefault(class_.class_name, {"name": class_.class_name, "frames": 0, "bars": []})
            row["frames"] = max(row["frames"], class_.frames)
            row["bars"].append((colour, class_.named / class_.frames, class_.similarity))
    return sorted(rows.values(), key=lambda row: (-row["frames"], row["name"]))
