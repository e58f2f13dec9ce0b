"""Print a coverage benchmark as tables: coverage by object size, most missed classes, near misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_caption_ros.cli.terminal import console, printable

if TYPE_CHECKING:
    from rich.table import Table

    from smart_caption_ros.evaluation.comparison import Comparison
    from smart_caption_ros.evaluation.report import CoverageReport, CoverageStatistics

_LISTED = 10


def print_comparison(comparison: Comparison) -> None:
    """Print the tables of a comparison."""
    terminal = console()
    terminal.print("Coverage of objects that cover more of the image than this, and in how many frames there are any:")
    terminal.print(_coverage_table(comparison))
    for label, outcome in zip(comparison.labels, comparison.outcomes, strict=True):
        suffix = f" ({printable(label)})" if len(comparison.outcomes) > 1 else ""
        for table in (_missed_table(outcome.report, suffix), _near_miss_table(outcome.report, suffix)):
            if table.row_count:
                terminal.print()
                terminal.print(table)


def _coverage_table(comparison: Comparison) -> Table:
    """Build the table of coverage, one row per sequence and model; of a single sequence only the row "all"."""
    from rich.table import Table
    from rich.text import Text

    from smart_caption_ros.evaluation.report import AREA_THRESHOLDS

    table = Table("sequence", "captions", box=None, pad_edge=False)
    for threshold in AREA_THRESHOLDS:
        table.add_column(f"> {100 * threshold:g} %", justify="right")
    table.add_column("noun support", justify="right")
    pairs = list(zip(comparison.labels, comparison.outcomes, strict=True))
    sequences = list(dict.fromkeys(name for _, outcome in pairs for name in outcome.report.sequences))
    for sequence in sequences if len(sequences) > 1 else []:
        for label, outcome in pairs:
            if sequence in outcome.report.sequences:
                cells = _cells(outcome.report.sequences[sequence])
                table.add_row(Text(printable(sequence)), Text(printable(label)), *cells)
    for label, outcome in pairs:
        table.add_row("all", Text(printable(label)), *_cells(outcome.report.overall))
    return table


def _cells(figures: CoverageStatistics) -> list[str]:
    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    cells = [f"{figure(value)} ({figures.frames[threshold]})" for threshold, value in figures.coverage.items()]
    return [*cells, f"{figure(figures.noun_support)} ({figures.noun_support_frames})"]


def _missed_table(report: CoverageReport, suffix: str) -> Table:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(escape(f"most missed{suffix}"), "missed", "of frames", box=None, pad_edge=False)
    for statistics in [statistics for statistics in report.classes if statistics.missed][:_LISTED]:
        table.add_row(Text(printable(statistics.class_name)), str(statistics.missed), str(statistics.frames))
    return table


def _near_miss_table(report: CoverageReport, suffix: str) -> Table:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(escape(f"near misses{suffix}"), "noun assigned", "frames", "similarity", box=None, pad_edge=False)
    for miss in report.near_misses[:_LISTED]:
        similarity = f"{miss.similarity:.3f}"
        table.add_row(Text(printable(miss.class_name)), Text(printable(miss.noun)), str(miss.frames), similarity)
    return table
