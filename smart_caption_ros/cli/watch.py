"""`smart-caption watch`."""

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from smart_caption_ros.cli.caption_feed import FeedOptions, open_feed
from smart_caption_ros.cli.options import Option
from smart_caption_ros.cli.terminal import log_to_terminal, print_json, printable, report_error


@dataclass(frozen=True)
class WatchOptions(FeedOptions):
    camera: Annotated[list[str] | None, Option(help="Camera to show; may be repeated. All cameras if omitted.")] = None
    as_json: Annotated[bool, Option("--json", help="Print one JSON object per caption.")] = False
    count: Annotated[int | None, Option(min=1, help="End after this number of captions; prints lines.")] = None
    loop: Annotated[bool, Option("--loop", help="With --source: start again at the end.")] = False


def watch(*, options: WatchOptions) -> None:
    """Follow the captions of running nodes, or of a source, on the terminal until Ctrl-C.

    A line for each caption is printed instead where stdout is no terminal, as in a pipe.
    """
    from rich.console import Console

    from smart_caption_ros.live.terminal import caption_line, caption_records
    from smart_caption_ros.live.terminal import watch as watch_feed

    can_draw = sys.stdout.isatty() and not Console().is_dumb_terminal
    as_lines = options.as_json or options.count is not None or not can_draw
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
        for live in caption_records(feed, count=options.count, report=report_error):
            if options.as_json:
                print_json(live.to_json(), indent=None)
            else:
                print(printable(caption_line(live)), flush=True)
