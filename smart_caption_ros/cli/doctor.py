"""`smart-caption doctor`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from smart_caption_ros.cli.terminal import FAILED, JsonOption, console, failures_in_a_sentence, printable

if TYPE_CHECKING:
    from smart_caption_ros.measuring.doctor import Check


def doctor(as_json: JsonOption = False) -> None:
    """Try out what this machine can do, and say what to do about the rest.

    The exit status is 1 where something is broken; what is merely absent does not count.
    """
    with failures_in_a_sentence():
        from rich.console import Console

        from smart_caption_ros.measuring import doctor as doctor_module

        with Console(stderr=True).status("") as status:
            checks = doctor_module.examine(lambda name: status.update(f"trying out: {name}"))
        healthy = doctor_module.is_healthy(checks)
        if as_json:
            print(json.dumps({"healthy": healthy, "checks": [vars(check) for check in checks]}, indent=2))
        else:
            _print_checks(checks)
        if not healthy:
            raise typer.Exit(FAILED)


def _print_checks(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    styles = {"ok": "green", "absent": "dim", "warning": "yellow", "broken": "bold red"}
    table = Table("", "", "found", box=None, pad_edge=False, show_header=False)
    for check in checks:
        found = Text(printable(check.found))
        if check.remedy:
            found.append(f"\n-> {printable(check.remedy)}", style="cyan")
        table.add_row(Text(check.status.value, style=styles[check.status.value]), check.name, found)
    console().print(table)
