"""`smart-caption describe`."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.describe_bags import describe_one_bag, describe_shards, model_settings
from smart_caption_ros.cli.options import (
    Argument,
    EngineOption,
    GuideOption,
    GuideStrengthOption,
    Option,
    TrustOptions,
    WorkerOptions,
)
from smart_caption_ros.cli.terminal import (
    FAILED,
    check_output_file,
    input_files,
    log_to_terminal,
    print_json,
    print_line,
    printable,
    progress_bar,
    report_error,
    status,
)
from smart_caption_ros.files import check_outputs_in
from smart_caption_ros.text import counted

if TYPE_CHECKING:
    from smart_caption_ros.captioning import Caption
    from smart_caption_ros.grounding.named_objects import Grounding
    from smart_caption_ros.sources.captioned_frames import CaptionedFrame

# Five pictures per row, so that captions on a sheet are still readable.
_SHEET_PICTURES, _SHEET_COLUMNS = 48, 5
_BAG_SUFFIXES = (".mcap", ".db3")


@dataclass(frozen=True)
class DescribeOptions(WorkerOptions, TrustOptions):
    as_json: Annotated[bool, Option("--json", help="Print one JSON object per line instead of text.")] = False
    bundle: Annotated[Path | None, Option(help="Folder of the bundle; the default bundle if omitted.")] = None
    engine: EngineOption = "auto"
    detector: Annotated[
        Path | None,
        Option(help="ONNX detector to use instead of the bundle's own, or none; objects, nouns and coverage need one."),
    ] = None
    objects_guide: GuideOption = "auto"
    guide_strength: GuideStrengthOption = None
    topic: Annotated[
        list[str] | None,
        Option(help="Image topic of a bag that has several. For a bag of captions several times; all by default."),
    ] = None
    every: Annotated[int, Option(min=1, help="Caption every Nth frame of each source.")] = 1
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            help="Folder for the frames with their captions drawn, as PNG files; or the .mcap or .db3 file of a bag of "
            "captions.",
        ),
    ] = None
    sheet: Annotated[
        Path | None,
        Option(help="PNG or JPEG file for one sheet of captioned frames; of many frames an even selection."),
    ] = None
    with_images: Annotated[bool, Option("--with-images", help="Copy the images of a bag into the bag of captions.")] = (
        False
    )
    force: Annotated[bool, Option("--force", help="Replace files of captions that exist.")] = False
    shards: Annotated[
        Path | None,
        Option(
            help="Folder for one file of captions per input: of bags, and of sequences and other sources in them. PATH "
            "may be a folder or a pattern."
        ),
    ] = None
    list_file: Annotated[Path | None, Option("--list", help="File with one PATH per line, for --shards.")] = None


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
    output = options.output
    into_bag = output is not None and output.suffix in _BAG_SUFFIXES
    _check_combination(paths or [], options, into_bag=into_bag)
    if options.shards is not None:
        describe_shards(paths or [], options.shards, options)
    elif output is not None and into_bag:
        describe_one_bag(paths or [], output, options)
    else:
        _describe_frames(paths or [], options)


def _describe_frames(paths: Sequence[str], options: DescribeOptions) -> None:
    from smart_caption_ros.bags.message_captioner import load_coverage
    from smart_caption_ros.sources import FrameSource, captioned_frames

    pictures = _Pictures(paths, options)
    log_to_terminal()
    sources = captioned_frames.open_all(paths, options.topic[0] if options.topic else None)
    captioner = coverage = None
    if any(isinstance(source, FrameSource) for source in sources):
        with status("loading the model"):
            captioner = model_settings(options).load_captioner()
            coverage = load_coverage(captioner) if captioner.detector else None
    described = captioned_frames.describe(captioner, sources, options.every, coverage, options.trust)
    is_complete = True
    for frame in _with_progress(described, captioned_frames.count_frames(sources, options.every)):
        if options.as_json:
            print_json(frame.record.to_json(), indent=None)
        else:
            _print_frame(frame)
        pictures.add(frame)
        is_complete = is_complete and not frame.error
    for sentence in pictures.finish():
        if not options.as_json:
            print(printable(sentence))
    if not is_complete:
        raise typer.Exit(FAILED)


class _Pictures:
    """Draws the captioned frames for --output and --sheet, after a check that these overwrite no input."""

    def __init__(self, paths: Sequence[str], options: DescribeOptions) -> None:
        from smart_caption_ros.viewing import PICTURE_SUFFIXES, ContactSheet

        self._folder, self._sheet_path = options.output, options.sheet
        if self._sheet_path is not None and self._sheet_path.suffix.lower() not in PICTURE_SUFFIXES:
            sentence = f"{self._sheet_path} does not end in {', '.join(PICTURE_SUFFIXES)}."
            raise typer.BadParameter(sentence, param_hint="--sheet")
        check_output_file(self._sheet_path, "--sheet", input_files(paths))
        if self._folder is not None:
            check_outputs_in(self._folder, "*.png", input_files(paths))
            self._folder.mkdir(parents=True, exist_ok=True)
        self._sheet = ContactSheet(_SHEET_PICTURES, _SHEET_COLUMNS)
        self._stems: set[str] = set()
        self._sheet_stem = ""  # of a sheet among the overlays, none of which may have its name
        if self._sheet_path is not None and self._folder is not None and self._sheet_path.suffix == ".png":
            self._sheet_stem = self._sheet_path.stem if self._sheet_path.parent.samefile(self._folder) else ""

    def add(self, described: CaptionedFrame) -> None:
        """Draw a frame, if it has a caption."""
        from smart_caption_ros.sources.image_folder import IMAGE_SUFFIXES
        from smart_caption_ros.viewing import draw_overlay, write_picture

        frame, record = described.frame, described.record
        if (self._folder is None and self._sheet_path is None) or frame is None or described.error:
            return
        overlay_bgr = draw_overlay(frame.image_bgr, record.caption, frame.name, record.grounding)
        if self._sheet_path is not None:
            self._sheet.add(len(self._stems), overlay_bgr)
        path = Path(frame.name)
        stem = re.sub(r"[^\w.-]+", "_", path.stem if path.suffix.lower() in IMAGE_SUFFIXES else frame.name)
        free = (f"{stem}_{number}" if number > 1 else stem for number in itertools.count(1))
        stem = next(name for name in free if name not in self._stems and name != self._sheet_stem)
        self._stems.add(stem)
        if self._folder is not None:
            write_picture(self._folder / f"{stem}.png", overlay_bgr)

    def finish(self) -> list[str]:
        """Write the sheet; return a sentence about the folder and one about the sheet."""
        from smart_caption_ros.viewing import write_picture

        sentences = []
        if self._folder is not None:
            sentences.append(f"{counted(len(self._stems), 'picture')} in {self._folder}")
        if self._sheet_path is not None and self._stems:
            write_picture(self._sheet_path, self._sheet.picture())
            sentences.append(f"{counted(len(self._sheet), 'picture')} of {len(self._stems)} on {self._sheet_path}")
        return sentences


def _check_combination(paths: Sequence[str], options: DescribeOptions, *, into_bag: bool) -> None:
    """Raise BadParameter for options that cannot be combined."""
    if not paths and options.list_file is None:
        raise typer.BadParameter("Name at least one.", param_hint="PATH")
    shards = options.shards is not None
    of_shards = (options.list_file, options.jobs, options.ray)
    for is_wrong, sentence, option in (
        (shards and (options.output or options.sheet), "Give --shards or --output and --sheet, not both.", "--shards"),
        (into_bag and options.sheet, "A bag of captions has no sheet.", "--sheet"),
        (options.with_images and not (into_bag or shards), "Needs --output FILE.mcap, or --shards.", "--with-images"),
        (options.force and not (into_bag or shards), "Needs --output FILE.mcap, or --shards.", "--force"),
        (any(of_shards) and not shards, "Needs --shards.", "--list, --jobs and --ray"),
        (options.retries != WorkerOptions.retries and not shards, "Needs --shards.", "--retries"),
        (options.guide_strength and options.objects_guide == "off", "There is no guide.", "--guide-strength"),
        (
            len(options.topic or ()) > 1 and not (into_bag or shards),
            "Give one, or --output FILE.mcap for several.",
            "--topic",
        ),
    ):
        if is_wrong:
            raise typer.BadParameter(sentence, param_hint=option)


def _print_frame(described: CaptionedFrame) -> None:
    if described.error:
        report_error(described.error)
        return
    caption, grounding = described.record.caption, described.record.grounding
    if caption.calibrated_confidence is not None:
        trust = f"about {100 * caption.calibrated_confidence:.0f} of 100 captions like this are true"
    else:
        trust = f"mean probability of the words {caption.confidence:.2f}; this bundle cannot say how many are true"
    facts = f"{trust}; {1000 * caption.timing.total_s:.0f} ms"
    print_line(described.record.name, "bold")
    if caption.text:
        print_line(f"  {caption.text}")
    if described.record.status_message:
        print_line(f"  ({described.record.status_message})", "yellow")
    print_line(f"  {facts}", "dim")
    if grounding is not None:
        print_line(f"  {_evidence(caption, grounding)}", "dim")


def _evidence(caption: Caption, grounding: Grounding) -> str:
    """Return a line with the detected classes that the caption names and misses."""
    if grounding.coverage is None:
        return "no objects found"
    named = {caption.objects[noun.object_index].class_name for noun in grounding.nouns if noun.object_index is not None}
    counts = Counter(item.class_name for item in caption.objects)

    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"{counts[name]} {name}" if counts[name] > 1 else name for name in names) or "nothing"

    return (
        f"names {listed(name for name in counts if name in named)}; "
        f"misses {listed(name for name in counts if name not in named)}; coverage {grounding.coverage:.2f}"
    )


def _with_progress(frames: Iterator[CaptionedFrame], total: int | None) -> Iterator[CaptionedFrame]:
    from tqdm import tqdm

    with progress_bar(total) as bar:
        for frame in frames:
            with tqdm.external_write_mode():  # hides the bar while the caller prints
                yield frame
            bar.update()
