"""The commands of `smart-caption`, assembled from their modules."""

import typer

from smart_caption_ros import __version__
from smart_caption_ros.cli import benchmark, bundle, coverage, demo, describe, doctor, log, serve, watch
from smart_caption_ros.cli.options import add_command, make_app
from smart_caption_ros.cli.terminal import PROGRAM

app = make_app(
    name=PROGRAM,
    help="Captions for a robot's camera.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
add_command(app, describe.describe)
add_command(app, watch.watch)
add_command(app, demo.demo)
add_command(app, serve.serve)
add_command(app, doctor.doctor)
add_command(app, benchmark.benchmark)

bundle_app = make_app(help="Inspect, verify and build a bundle, the folder of a model.", no_args_is_help=True)
add_command(bundle_app, bundle.inspect)
add_command(bundle_app, bundle.verify)
add_command(bundle_app, bundle.build)
app.add_typer(bundle_app, name="bundle")

coverage_app = make_app(help="Measure how many of the objects in an image its caption names.", no_args_is_help=True)
add_command(coverage_app, coverage.acvr)
add_command(coverage_app, coverage.coco)
add_command(coverage_app, coverage.folder)
add_command(coverage_app, coverage.score)
app.add_typer(coverage_app, name="coverage")


log_app = make_app(help="Remember what was seen, and find it again.", no_args_is_help=True)
add_command(log_app, log.record)
add_command(log_app, log.find, ignore_unknown_options=True)
add_command(log_app, log.export)
app.add_typer(log_app, name="log")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass
