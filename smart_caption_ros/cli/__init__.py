"""The command line, `smart-caption`: one module per command, assembled here.

Commands import what they need when they run, so that `--help` and usage errors are fast, and so that no command needs
libraries that it does not use.
"""

from typing import Annotated

import typer

from smart_caption_ros import __version__
from smart_caption_ros.cli import (
    benchmark,
    build_engine,
    bundle,
    coverage,
    coverage_benchmark,
    demo,
    describe,
    doctor,
    verify,
)
from smart_caption_ros.cli.terminal import PROGRAM

app = typer.Typer(
    name=PROGRAM,
    help="Captions for a robot's camera.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(describe.describe)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.command()(benchmark.benchmark)
app.command()(verify.verify)
app.command()(build_engine.build_engine)

bundle_app = typer.Typer(help="Inspect and verify a bundle, the folder of a model.", no_args_is_help=True)
bundle_app.command()(bundle.inspect)
bundle_app.command()(bundle.verify)
app.add_typer(bundle_app, name="bundle")

coverage_app = typer.Typer(help="Measure how many of the objects in an image its caption names.", no_args_is_help=True)
coverage_app.command()(coverage_benchmark.acvr)
coverage_app.command()(coverage_benchmark.coco)
coverage_app.command()(coverage_benchmark.folder)
coverage_app.command()(coverage.score)
app.add_typer(coverage_app, name="coverage")


def main() -> None:
    """Entry point of `smart-caption`."""
    app(prog_name=PROGRAM)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass
