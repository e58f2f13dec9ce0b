"""`smart-caption describe`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.terminal import FAILED, complain, console, failures_in_a_sentence, log_to_terminal, printable

if TYPE_CHECKING:
    from smart_caption_ros.captioning import Captioner
    from smart_caption_ros.describing import Answer


def describe(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Images, folders of images, videos, ROS 2 bags, or the index of a camera (0).",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of text.")] = False,
    bundle: Annotated[Path | None, typer.Option(help="The bundle's folder; the one shipped by default.")] = None,
    engine: Annotated[str, typer.Option(help="What runs the model; `doctor` lists the engines.")] = "auto",
    topic: Annotated[str | None, typer.Option(help="The image topic of a bag that has several.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Caption every Nth frame of each source.")] = 1,
    output: Annotated[
        Path | None, typer.Option(help="A folder for the frames with their captions drawn, as PNG.")
    ] = None,
) -> None:
    """Say what pictures show.

    What cannot be read is reported in its place, and the rest is answered; the exit status is 1 then.
    """
    with failures_in_a_sentence():
        from smart_caption_ros import describing
        from smart_caption_ros.captioning.engines import ENGINE_NAMES
        from smart_caption_ros.datasets import FrameSource

        if engine not in ENGINE_NAMES:
            raise typer.BadParameter(f"{engine!r} is not one of {', '.join(ENGINE_NAMES)}.", param_hint="--engine")
        log_to_terminal()
        sources = describing.open_all(paths, topic)
        readable = any(isinstance(source, FrameSource) for source in sources)
        overlays = describing.OverlayFolder(output) if output is not None else None
        captioner = _load_captioner(bundle, engine) if readable else None
        complete = True
        answers = _with_progress(
            describing.describe(captioner, sources, every), describing.count_answers(sources, every)
        )
        for answer in answers:
            if as_json:
                print(json.dumps(describing.to_json(answer), allow_nan=False), flush=True)
            else:
                _print_answer(answer)
            if answer.frame is not None and answer.caption is not None and overlays is not None:
                overlays.write(answer.frame, answer.caption)
            complete = complete and not answer.error
        if overlays is not None and not as_json:
            print(f"{len(overlays)} picture{'s' if len(overlays) != 1 else ''} in {overlays.folder}")
        if not complete:
            raise typer.Exit(FAILED)


def _load_captioner(bundle: Path | None, engine: str) -> Captioner:
    from rich.console import Console

    from smart_caption_ros.captioning import Captioner

    with Console(stderr=True).status("loading the model"):  # says nothing where stderr is no terminal
        return Captioner.from_bundle(bundle, engine=engine)


def _print_answer(answer: Answer) -> None:
    from rich.text import Text

    caption = answer.caption
    if caption is None:
        complain(answer.error)
        return
    terminal = console()
    total_ms = 1000 * caption.timing.total_s
    facts = f"confidence {caption.confidence:.2f}, score {caption.score:.2f}, {total_ms:.0f} ms"
    terminal.print(Text(printable(answer.address), style="bold"), soft_wrap=True)
    terminal.print(Text(f"  {caption.text or '(no caption)'}"), soft_wrap=True)
    terminal.print(Text(f"  {facts}", style="dim"), soft_wrap=True)


def _with_progress(answers: Iterator[Answer], total: int | None) -> Iterator[Answer]:
    """The answers, with a progress bar on stderr after a second, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit="frame", delay=1, leave=False, disable=not sys.stderr.isatty()) as bar:
        for answer in answers:
            with tqdm.external_write_mode():  # the bar steps aside while the caller prints
                yield answer
            bar.update()
