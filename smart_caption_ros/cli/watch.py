"""`smart-caption watch`."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.caption_feed import FeedOptions, open_feed
from smart_caption_ros.cli.options import Option
from smart_caption_ros.cli.terminal import (
    errors_in_a_sentence,
    log_to_terminal,
    print_json,
    printable,
    report_error,
)

if TYPE_CHECKING:
    from smart_caption_ros.record import CaptionRecord


@dataclass(frozen=True)
class WatchOptions(FeedOptions):
    camera: Annotated[list[str] | None, Option(help="Camera to show; may be repeated. All cameras if omitted.")] = None
    as_json: Annotated[bool, Option("--json", help="Print one JSON object per caption.")] = False
    count: Annotated[int | None, Option(min=1, help="End after so many captions; prints lines.")] = None
    loop: Annotated[bool, Option("--loop", help="With --source: start again at the end.")] = False


def watch(*, options: WatchOptions) -> None:
    """Follow the captions of running nodes, or of a source, on the terminal until Ctrl-C.

    A line for each caption is printed instead where stdout is no terminal, as in a pipe.
    """
    with errors_in_a_sentence():
        from smart_caption_ros.live.terminal import print_lines
        from smart_caption_ros.live.terminal import watch as watch_feed

        if not options.source:
            _refuse_options_of_sources(options)
        as_lines = options.as_json or options.count is not None or not _can_draw()
        if as_lines:
            log_to_terminal()
        opened = open_feed(
            options,
            "smart_caption_watch",
            cameras=options.camera or (),
            loop=options.loop,
            are_images_wanted=lambda: False,
        )
        with opened as feed:
            if not as_lines:
                raise typer.Exit(watch_feed(feed))
            out = (lambda live: print_json(live.to_json(), indent=None)) if options.as_json else _print_line
            print_lines(feed, count=options.count, out=out, report=report_error)


def _can_draw() -> bool:
    """Whether stdout is a terminal whose cursor can be moved."""
    from rich.console import Console

    return sys.stdout.isatty() and not Console().is_dumb_terminal


def _print_line(live: "CaptionRecord") -> None:
    from smart_caption_ros.live.terminal import caption_line

    print(printable(caption_line(live)), flush=True)


def _refuse_options_of_sources(options: WatchOptions) -> None:
    """Refuse options that would do nothing: a node has its own bundle, engine and detector."""
    plain = WatchOptions()
    for name in ("bundle", "engine", "detector", "interval", "loop"):
        if getattr(options, name) != getattr(plain, name):
            raise typer.BadParameter("It needs --source; a node has its own.", param_hint=f"--{name}")
