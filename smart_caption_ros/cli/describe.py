"""`smart-caption describe`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.describe_bags import BAG_SUFFIXES, describe_one_bag, describe_shards, model_settings
from smart_caption_ros.cli.describe_options import DescribeOptions
from smart_caption_ros.cli.options import Argument
from smart_caption_ros.cli.terminal import (
    FAILED,
    check_engine,
    check_guide,
    check_output_file,
    console,
    errors_in_a_sentence,
    input_files,
    log_to_terminal,
    make_progress_bar,
    print_json,
    printable,
    report_error,
    status,
)
from smart_caption_ros.text import counted

if TYPE_CHECKING:
    from smart_caption_ros.captioning import Caption, Captioner
    from smart_caption_ros.grounding import NounCoverage
    from smart_caption_ros.grounding.named_objects import Grounding
    from smart_caption_ros.sources.captioned_frames import CaptionedFrame, OverlayFolder
    from smart_caption_ros.viewing import ContactSheet

# Five pictures per row, so that captions on a sheet are still readable.
_SHEET_PICTURES, _SHEET_COLUMNS = 48, 5


def describe(
    paths: Annotated[
        list[str] | None,
        Argument(
            metavar="PATH",
            help="Images, folders of images, videos, ROS 2 bags, or the index of a camera (0).",
        ),
    ] = None,
    *,
    options: DescribeOptions,
) -> None:
    """Caption images, videos, bags and cameras.

    A frame that cannot be read is reported in its place, and the others are captioned; the exit status is then 1.
    """
    with errors_in_a_sentence():
        check_engine(options.engine)
        check_guide(options.objects_guide)
        output = options.output
        into_bag = output is not None and output.suffix in BAG_SUFFIXES
        _check_combination(paths or [], options, into_bag=into_bag)
        if options.shards is not None:
            describe_shards(paths or [], options.shards, options)
        elif output is not None and into_bag:
            describe_one_bag(paths or [], output, options)
        else:
            _describe_frames(paths or [], options)


def _describe_frames(paths: Sequence[str], options: DescribeOptions) -> None:
    """Print the captions of the frames of all sources."""
    from smart_caption_ros.sources import FrameSource, captioned_frames

    _check_pictures(paths, options)
    log_to_terminal()
    sources = captioned_frames.open_all(paths, options.topic[0] if options.topic else None)
    readable = any(isinstance(source, FrameSource) for source in sources)
    pictures = _Pictures(options)
    captioner = _load_captioner(options) if readable else None
    coverage = _load_coverage(captioner.detector.class_names) if captioner and captioner.detector else None
    described = captioned_frames.describe(captioner, sources, options.every, coverage)
    complete = True
    for frame in _with_progress(described, captioned_frames.count_frames(sources, options.every)):
        if options.as_json:
            print_json(frame.record.to_json(), indent=None)
        else:
            _print_frame(frame)
        pictures.add(frame)
        complete = complete and not frame.error
    sentences = pictures.finish()
    if not options.as_json:
        for sentence in sentences:
            print(printable(sentence))
    if not complete:
        raise typer.Exit(FAILED)


class _Pictures:
    """Draws the captioned frames for --output and --sheet."""

    def __init__(self, options: DescribeOptions) -> None:
        """Create the folder; raises OSError where that fails."""
        from smart_caption_ros.sources.captioned_frames import OverlayFolder
        from smart_caption_ros.viewing import ContactSheet

        self._folder: OverlayFolder | None = OverlayFolder(options.output) if options.output is not None else None
        self._sheet: ContactSheet | None = ContactSheet(_SHEET_PICTURES, _SHEET_COLUMNS) if options.sheet else None
        self._sheet_path = options.sheet
        self._count = 0

    def add(self, described: CaptionedFrame) -> None:
        """Draw a frame, if it has a caption."""
        from smart_caption_ros.viewing import draw_overlay

        frame, record = described.frame, described.record
        if (self._folder is None and self._sheet is None) or frame is None or described.error:
            return
        overlay_bgr = draw_overlay(frame.image_bgr, record.caption, frame.name, record.grounding)
        if self._folder is not None:
            self._folder.write(frame.name, overlay_bgr)
        if self._sheet is not None:
            self._sheet.add(self._count, overlay_bgr)
        self._count += 1

    def finish(self) -> list[str]:
        """Write the sheet; return a sentence for each of folder and sheet."""
        from smart_caption_ros.viewing import write_picture

        sentences = []
        if self._folder is not None:
            sentences.append(f"{counted(len(self._folder), 'picture')} in {self._folder.folder}")
        if self._sheet_path is not None and self._sheet:
            write_picture(self._sheet_path, self._sheet.picture())
            sentences.append(f"{counted(len(self._sheet), 'picture')} of {self._count} on {self._sheet_path}")
        return sentences


def _check_pictures(paths: Sequence[str], options: DescribeOptions) -> None:
    """Refuse pictures that cannot be written, or would replace an input, before any frame is captioned."""
    from smart_caption_ros.files import check_outputs_in
    from smart_caption_ros.viewing import PICTURE_SUFFIXES

    sheet = options.sheet
    if sheet is not None and sheet.suffix.lower() not in PICTURE_SUFFIXES:
        raise typer.BadParameter(f"{sheet} does not end in {', '.join(PICTURE_SUFFIXES)}.", param_hint="--sheet")
    check_output_file(sheet, "--sheet", input_files(paths))
    if options.output is not None:
        check_outputs_in(options.output, "*.png", input_files(paths))


def _load_captioner(options: DescribeOptions) -> Captioner:
    with status("loading the model"):
        return model_settings(options).load_captioner()


def _check_combination(paths: Sequence[str], options: DescribeOptions, *, into_bag: bool) -> None:
    """Refuse options that do not go together.

    Raises:
        typer.BadParameter: names the option.
    """
    if not paths and options.list_file is None:
        raise typer.BadParameter("Name at least one.", param_hint="PATH")
    into_files = options.shards is not None
    if into_files and (options.output is not None or options.sheet is not None):
        raise typer.BadParameter("Give --shards or --output and --sheet, not both.", param_hint="--shards")
    if into_bag and options.sheet is not None:
        raise typer.BadParameter("A bag of captions has no sheet.", param_hint="--sheet")
    option: str
    given: object
    for option, given in (("--with-images", options.with_images), ("--force", options.force)):
        if given and not into_bag and not into_files:
            raise typer.BadParameter("Needs --output FILE.mcap, or --shards.", param_hint=option)
    for option, given in (("--list", options.list_file), ("--jobs", options.jobs), ("--ray", options.ray)):
        if given and not into_files:
            raise typer.BadParameter("Needs --shards.", param_hint=option)
    if not into_bag and not into_files and len(options.topic or ()) > 1:
        raise typer.BadParameter("Give one, or --output FILE.mcap for several.", param_hint="--topic")


def _load_coverage(class_names: Sequence[str]) -> NounCoverage:
    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from smart_caption_ros.grounding import NounCoverage

    with status("loading noun coverage"):
        return NounCoverage.load(class_list=(*COCO_CLASSES, *class_names))


def _print_frame(described: CaptionedFrame) -> None:
    from rich.text import Text

    if described.error:
        report_error(described.error)
        return
    caption, grounding = described.record.caption, described.record.grounding
    terminal = console()
    total_ms = 1000 * caption.timing.total_s
    facts = f"confidence {caption.confidence:.2f}, score {caption.score:.2f}, {total_ms:.0f} ms"
    if caption.calibrated_confidence is not None:
        facts = f"{100 * caption.calibrated_confidence:.0f} % of such captions are true, {facts}"
    if not caption.shows_detail:
        facts += "; a guess: the image shows next to no detail"
    terminal.print(Text(printable(described.record.name), style="bold"), soft_wrap=True)
    terminal.print(Text(f"  {caption.text or '(no caption)'}"), soft_wrap=True)
    terminal.print(Text(f"  {facts}", style="dim"), soft_wrap=True)
    if grounding is not None:
        terminal.print(Text(f"  {_evidence(caption, grounding)}", style="dim"), soft_wrap=True)


def _evidence(caption: Caption, grounding: Grounding) -> str:
    """Return a line with the detected classes that the caption names and misses."""
    if grounding.coverage is None:
        return "no objects found"
    named = {caption.objects[noun.object_index].class_name for noun in grounding.nouns if noun.object_index is not None}
    counts = Counter(item.class_name for item in caption.objects)

    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"{counts[name]} {name}" if counts[name] > 1 else name for name in names) or "nothing"

    return printable(
        f"names {listed(name for name in counts if name in named)}; "
        f"misses {listed(name for name in counts if name not in named)}; coverage {grounding.coverage:.2f}"
    )


def _with_progress(frames: Iterator[CaptionedFrame], total: int | None) -> Iterator[CaptionedFrame]:
    """Iterate with a progress bar on stderr after a second, where that is a terminal."""
    from tqdm import tqdm

    with make_progress_bar(total=total, unit="frame", delay=1, disable=not sys.stderr.isatty()) as bar:
        for frame in frames:
            with tqdm.external_write_mode():  # hides the bar while the caller prints
                yield frame
            bar.update()
