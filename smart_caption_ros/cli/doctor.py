"""`smart-caption doctor`."""

from typing import TYPE_CHECKING

import typer

from smart_caption_ros.cli.options import JsonOption
from smart_caption_ros.cli.terminal import FAILED, print_json, print_table, printable, status

if TYPE_CHECKING:
    from smart_caption_ros.measuring.doctor import Check


def doctor(as_json: JsonOption = False) -> None:
    """Check what works on this machine, and print remedies for what does not.

    The exit status is 1 if something is broken; optional parts that are absent do not count.
    """
    from smart_caption_ros.measuring import doctor as doctor_module

    with status("") as show:
        checks = doctor_module.run_checks(lambda name: show(f"checking: {name}"))
    healthy = doctor_module.is_healthy(checks)
    if as_json:
        print_json({"healthy": healthy, "checks": [vars(check) for check in checks]})
    else:
        _print_checks(checks)
    if not healthy:
        raise typer.Exit(FAILED)


def _print_checks(checks: "list[Check]") -> None:
    from rich.text import Text

    styles = {"ok": "green", "absent": "dim", "warning": "yellow", "broken": "bold red"}
    rows = []
    for check in checks:
        found = Text(printable(check.found))
        if check.remedy:
            found.append(f"\n-> {printable(check.remedy)}", style="cyan")
        rows.append((Text(check.status.value, style=styles[check.status.value]), check.name, found))
    print_table(("", "", ""), rows)
