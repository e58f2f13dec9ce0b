"""The command line, `smart-caption`: one module a verb, put together here.

What a command needs is imported when the command runs: `--help` and a mistyped option answer at once, and no
command needs more of the machine than it uses.
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

bundle_app = typer.Typer(help="Look into a bundle, the folder that is a model.", no_args_is_help=True)
bundle_app.command()(bundle.inspect)
bundle_app.command()(bundle.verify)
app.add_typer(bundle_app, name="bundle")

coverage_app = typer.Typer(help="How much of what is there a caption names.", no_args_is_help=True)
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
