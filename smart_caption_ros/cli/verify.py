"""`smart-caption verify`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.options import BundleArgument, JsonOption, Option, ThreadsOption
from smart_caption_ros.cli.terminal import FAILED, console, errors_in_a_sentence, print_json, printable, status

if TYPE_CHECKING:
    from smart_caption_ros.measuring.agreement import Comparison


def verify(
    path: BundleArgument = None,
    as_json: JsonOption = False,
    frames: Annotated[int, Option(min=1, help="Number of frames to compare on.")] = 8,
    threads: ThreadsOption = None,
) -> None:
    """Check that all engines of this machine give the same captions with a bundle; the exit status is 1 otherwise.

    The reference is ONNX Runtime on the CPU. `bundle verify` checks the files of a bundle.
    """
    with errors_in_a_sentence():
        from smart_caption_ros.captioning import Bundle
        from smart_caption_ros.measuring.agreement import REFERENCE, compare_engines

        bundle = Bundle.load(path)
        with status("running the reference") as show:
            comparisons = compare_engines(
                bundle, frames, threads, lambda name: show(f"comparing {name} (TensorRT may build first)")
            )
        agree = all(comparison.agrees for comparison in comparisons)
        if as_json:
            report = {
                "ok": agree,
                "bundle": str(bundle.path),
                "name": bundle.name,
                "reference": REFERENCE,
                "comparisons": [asdict(comparison) for comparison in comparisons],
            }
            print_json(report)
        else:
            _print_comparisons(comparisons)
            print(f"{bundle.name}: {_conclusion(comparisons)}")
        if not agree:
            raise typer.Exit(FAILED)


def _conclusion(comparisons: list[Comparison]) -> str:
    if not all(comparison.agrees for comparison in comparisons):
        return "the engines here do not agree"
    differing = sum(comparison.captions - comparison.same_captions for comparison in comparisons)
    if differing:
        return (
            f"the engines here agree as far as a bundle in 8 bits allows: {differing} of "
            f"{sum(comparison.captions for comparison in comparisons)} captions differ"
        )
    return "all engines here agree"


def _print_comparisons(comparisons: list[Comparison]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "engine", "captioner", "same captions", "log probabilities", "found", box=None, pad_edge=False)
    for comparison in comparisons:
        table.add_row(
            Text("ok", style="green") if comparison.agrees else Text("differs", style="bold red"),
            comparison.engine,
            comparison.graph,
            f"{comparison.same_captions} of {comparison.captions}",
            f"within {comparison.largest_log_probability_difference:.1e}",
            Text(printable(comparison.problem or comparison.runs)),
        )
    console().print(table)
