"""`smart-caption verify`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.terminal import (
    FAILED,
    BundleArgument,
    JsonOption,
    console,
    failures_in_a_sentence,
    printable,
)

if TYPE_CHECKING:
    from smart_caption_ros.measuring.agreement import Comparison


def verify(
    path: BundleArgument = None,
    as_json: JsonOption = False,
    frames: Annotated[int, typer.Option(min=1, help="How many frames to compare on.")] = 8,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the engine's choice by default.")] = None,
) -> None:
    """Check that every engine of this machine says the same with a bundle; the exit status is 1 where one does not.

    The reference is ONNX Runtime on the CPU. Whether the files are as they were exported is `bundle verify`.
    """
    with failures_in_a_sentence():
        from rich.console import Console

        from smart_caption_ros.captioning import Bundle
        from smart_caption_ros.measuring.agreement import REFERENCE, compare_engines

        bundle = Bundle.load(path)
        with Console(stderr=True).status("running the reference") as status:
            comparisons = compare_engines(
                bundle, frames, threads, lambda name: status.update(f"comparing {name} (TensorRT may build first)")
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
            print(json.dumps(report, indent=2))
        else:
            _print_comparisons(comparisons)
            print(f"{bundle.name}: " + ("all engines here agree" if agree else "the engines here do not agree"))
        if not agree:
            raise typer.Exit(FAILED)


def _print_comparisons(comparisons: list[Comparison]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "engine", "captioner", "same captions", "log probabilities", "found", box=None, pad_edge=False)
    for each in comparisons:
        table.add_row(
            Text("ok", style="green") if each.agrees else Text("differs", style="bold red"),
            each.engine,
            each.graph,
            f"{each.same_captions} of {each.captions}",
            f"within {each.largest_log_probability_difference:.1e}",
            Text(printable(each.problem or each.runs)),
        )
    console().print(table)
