"""`smart-caption bundle`: inspect and verify the folder of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from smart_caption_ros.cli.options import BundleArgument, JsonOption
from smart_caption_ros.cli.terminal import FAILED, console, errors_in_a_sentence, print_json, printable, report_error


def inspect(path: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Print the manifest of a bundle."""
    with errors_in_a_sentence():
        from smart_caption_ros.captioning.bundle import load_bundle

        bundle = load_bundle(path)
        if as_json:
            print_json(dict(bundle.manifest))
            return
        from rich.table import Table
        from rich.text import Text

        table = Table("", "", box=None, pad_edge=False, show_header=False)
        table.add_row("path", Text(printable(str(bundle.path))))
        for key, value in _rows(bundle.manifest):
            table.add_row(Text(key, style="bold"), Text(value))
        console().print(table)


def verify(path: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Check every file of a bundle against its manifest; the exit status is 1 if one differs.

    This finds damaged copies; `smart-caption verify` compares the engines of this machine.
    """
    with errors_in_a_sentence():
        from smart_caption_ros.captioning.bundle import load_bundle
        from smart_caption_ros.captioning.errors import BundleError

        try:
            bundle = load_bundle(path)
        except BundleError as error:
            if as_json:
                print_json({"ok": False, "error": str(error)}, indent=None)
            else:
                report_error(str(error))
            raise typer.Exit(FAILED) from None
        files = list(bundle.manifest["files"])
        if as_json:
            report = {"ok": True, "bundle": str(bundle.path), "name": bundle.name, "files": files}
            print_json(report, indent=None)
            return
        for name in files:
            print(f"ok  {name}")
        print(f"{bundle.name}: all {len(files)} files are as they were exported")


def _rows(manifest: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten a manifest to rows: nested keys are joined by dots, long lists are shortened."""
    for key, value in manifest.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{key}.")
        elif isinstance(value, list) and any(isinstance(element, Mapping) for element in value):
            yield from _rows({str(number): element for number, element in enumerate(value, 1)}, f"{prefix}{key}.")
        elif isinstance(value, list):
            shown = ", ".join(str(element) for element in value[:8]) or "(none)"
            yield f"{prefix}{key}", f"{shown}, ... ({len(value)} in all)" if len(value) > 8 else shown
        else:
            yield f"{prefix}{key}", str(value) or "(none)"
