"""`smart-caption watch`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.options import EngineOption, Option
from smart_caption_ros.cli.terminal import (
    FAILED,
    check_engine,
    errors_in_a_sentence,
    log_to_terminal,
    printable,
    report_error,
)

if TYPE_CHECKING:
    from smart_caption_ros.live import CaptionFeed


_MAX_SENTENCE = 1000


@dataclass(frozen=True)
class WatchOptions:
    """The options of `watch`."""

    topic: Annotated[
        list[str] | None,
        Option(help="Topic of captions; may be repeated. All topics of captions if omitted. With --source, the image "
               "topic of a bag that has several."),
    ] = None  # fmt: skip
    camera: Annotated[list[str] | None, Option(help="Camera to show; may be repeated. All cameras if omitted.")] = None
    source: Annotated[
        list[str] | None,
        Option(help="Caption this without ROS: an image, a folder, a video, a bag or the index of a camera (0); may be "
               "repeated."),
    ] = None  # fmt: skip
    as_json: Annotated[bool, Option("--json", help="Print one JSON object per caption.")] = False
    count: Annotated[int | None, Option(min=1, help="End after so many captions; prints lines.")] = None
    bundle: Annotated[
        Path | None, Option(help="With --source: folder of the bundle; the default bundle if omitted.")
    ] = None
    engine: EngineOption = "auto"
    detector: Annotated[
        Path | None, Option(help="With --source: ONNX detector to use instead of the bundle's own, or none.")
    ] = None
    interval: Annotated[float, Option(min=0, max=3600, help="With --source: seconds between two photographs.")] = 1.0
    loop: Annotated[bool, Option("--loop", help="With --source: start again at the end.")] = False


def watch(*, options: WatchOptions) -> None:
    """Follow the captions of running nodes, or of a source, on the terminal.

    A line for each caption is printed instead where stdout is no terminal, as in a pipe.

    Keys: q quits, space pauses, the arrows, Page Up and Page Down scroll, tab or a digit chooses the camera.
    """
    with errors_in_a_sentence():
        from smart_caption_ros.live import FeedError
        from smart_caption_ros.live.terminal import print_lines
        from smart_caption_ros.live.terminal import watch as watch_feed
        from smart_caption_ros.text import visible

        check_engine(options.engine)
        if not options.source:
            _refuse_options_of_sources(options)
        as_lines = options.as_json or options.count is not None or not _can_draw()
        if as_lines:
            log_to_terminal()
        try:
            with ExitStack() as stack:
                feed = stack.enter_context(_open_feed(options))
                if not as_lines:
                    raise typer.Exit(watch_feed(feed))
                print_lines(feed, as_json=options.as_json, count=options.count, out=_print, report=report_error)
        except FeedError as error:
            report_error(visible(str(error), _MAX_SENTENCE))
            raise typer.Exit(FAILED) from error


def _can_draw() -> bool:
    """Whether stdout is a terminal whose cursor can be moved."""
    from rich.console import Console

    return sys.stdout.isatty() and not Console().is_dumb_terminal


def _print(line: str) -> None:
    print(printable(line), flush=True)


def _refuse_options_of_sources(options: WatchOptions) -> None:
    """Refuse options that would do nothing: a node has its own bundle, engine and detector."""
    plain = WatchOptions()
    for name in ("bundle", "engine", "detector", "interval", "loop"):
        if getattr(options, name) != getattr(plain, name):
            raise typer.BadParameter("It needs --source; a node has its own.", param_hint=f"--{name}")


def _open_feed(options: WatchOptions) -> AbstractContextManager[CaptionFeed]:
    from smart_caption_ros.cli.caption_feed import SourceSettings, ros_feed, source_feed

    topics, cameras = options.topic or (), options.camera or ()
    if not options.source:
        return ros_feed(topics, "smart_caption_watch", cameras=cameras, are_images_wanted=lambda: False)
    settings = SourceSettings(options.bundle, options.engine, options.detector, options.interval, options.loop)
    return source_feed(options.source, topics, settings, cameras)
