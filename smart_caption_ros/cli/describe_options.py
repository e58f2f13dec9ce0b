"""The options of `smart-caption describe`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from smart_caption_ros.cli.options import (
    EngineOption,
    GuideOption,
    GuideStrengthOption,
    Option,
    TrustOptions,
    WorkerOptions,
)


@dataclass(frozen=True)
class DescribeOptions(WorkerOptions, TrustOptions):
    """The options of `describe`."""

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
        Option(help="Image topic of a bag that has several; several, or all without it, for a bag of captions."),
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
