"""`smart-caption describe`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.terminal import (
    FAILED,
    check_engine,
    complain,
    console,
    failures_in_a_sentence,
    log_to_terminal,
    printable,
)

if TYPE_CHECKING:
    from smart_caption_ros.captioning import Caption, Captioner
    from smart_caption_ros.grounding import NounCoverage
    from smart_caption_ros.grounding.named_objects import Grounding
    from smart_caption_ros.sources.describing import Answer
    from smart_caption_ros.viewing import ContactSheet

# As wide as a caption is still read on a sheet.
_SHEET_PICTURES, _SHEET_COLUMNS = 48, 5


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
    detector: Annotated[
        Path | None,
        typer.Option(
            help="An ONNX detector in place of the bundle's own, or none; objects, nouns and coverage need one."
        ),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="The image topic of a bag that has several.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Caption every Nth frame of each source.")] = 1,
    output: Annotated[
        Path | None, typer.Option(help="A folder for the frames with their captions drawn, as PNG.")
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help="A PNG or JPEG file for one sheet of captioned frames; of many an even choice."),
    ] = None,
) -> None:
    """Say what pictures show.

    What cannot be read is reported in its place, and the rest is answered; the exit status is 1 then.
    """
    with failures_in_a_sentence():
        from smart_caption_ros.sources import FrameSource, describing
        from smart_caption_ros.viewing import draw_overlay, write_picture

        check_engine(engine)
        contact_sheet = _contact_sheet(sheet)
        log_to_terminal()
        sources = describing.open_all(paths, topic)
        readable = any(isinstance(source, FrameSource) for source in sources)
        overlays = describing.OverlayFolder(output) if output is not None else None
        captioner = _load_captioner(bundle, engine, detector) if readable else None
        coverage = _load_coverage(captioner.detector.class_names) if captioner and captioner.detector else None
        complete, captioned = True, 0
        answers = _with_progress(
            describing.describe(captioner, sources, every, coverage), describing.count_answers(sources, every)
        )
        for answer in answers:
            if as_json:
                print(json.dumps(describing.to_json(answer), allow_nan=False), flush=True)
            else:
                _print_answer(answer)
            drawn = overlays is not None or contact_sheet is not None
            if drawn and answer.frame is not None and answer.caption is not None:
                frame = answer.frame
                overlay_bgr = draw_overlay(frame.image_bgr, answer.caption, frame.name, answer.grounding)
                if overlays is not None:
                    overlays.write(frame.name, overlay_bgr)
                if contact_sheet is not None:
                    contact_sheet.add(captioned, overlay_bgr)
                captioned += 1
            complete = complete and not answer.error
        if overlays is not None and not as_json:
            print(f"{_pictures(len(overlays))} in {overlays.folder}")
        if sheet is not None and contact_sheet is not None and len(contact_sheet):
            write_picture(sheet, contact_sheet.picture())
            if not as_json:
                print(f"{_pictures(len(contact_sheet))} of {captioned} on {sheet}")
        if not complete:
            raise typer.Exit(FAILED)


def _contact_sheet(path: Path | None) -> ContactSheet | None:
    """An empty sheet where one is wanted; a file that cannot be written is refused before the frames are captioned."""
    from smart_caption_ros.viewing import PICTURE_SUFFIXES, ContactSheet

    if path is None:
        return None
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise typer.BadParameter(f"{path} does not end in {', '.join(PICTURE_SUFFIXES)}.", param_hint="--sheet")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"There is no folder {path.parent} to write {path.name} into.", param_hint="--sheet")
    return ContactSheet(_SHEET_PICTURES, _SHEET_COLUMNS)


def _pictures(count: int) -> str:
    return f"{count} picture{'s' if count != 1 else ''}"


def _load_captioner(bundle: Path | None, engine: str, detector: Path | None) -> Captioner:
    from rich.console import Console

    from smart_caption_ros.captioning import Captioner

    with Console(stderr=True).status("loading the model"):  # says nothing where stderr is no terminal
        return Captioner.from_bundle(bundle, engine=engine, detector=detector)


def _load_coverage(class_names: Sequence[str]) -> NounCoverage:
    from rich.console import Console

    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from smart_caption_ros.grounding import NounCoverage

    with Console(stderr=True).status("loading noun coverage"):
        return NounCoverage.load(class_list=(*COCO_CLASSES, *class_names))


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
    if answer.grounding is not None:
        terminal.print(Text(f"  {_evidence(caption, answer.grounding)}", style="dim"), soft_wrap=True)


def _evidence(caption: Caption, grounding: Grounding) -> str:
    """What the caption names of what was found, and what it does not."""
    if grounding.coverage is None:
        return "no objects found"
    named = {caption.objects[noun.object_index].class_name for noun in grounding.nouns if noun.object_index is not None}
    counts = Counter(each.class_name for each in caption.objects)

    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"{counts[each]} {each}" if counts[each] > 1 else each for each in names) or "nothing"

    return printable(
        f"names {listed(name for name in counts if name in named)}; "
        f"misses {listed(name for name in counts if name not in named)}; coverage {grounding.coverage:.2f}"
    )


def _with_progress(answers: Iterator[Answer], total: int | None) -> Iterator[Answer]:
    """The answers, with a progress bar on stderr after a second, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit="frame", delay=1, leave=False, disable=not sys.stderr.isatty()) as bar:
        for answer in answers:
            with tqdm.external_write_mode():  # the bar steps aside while the caller prints
                yield answer
            bar.update()
