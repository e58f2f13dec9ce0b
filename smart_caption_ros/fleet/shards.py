"""Shards of `smart-caption describe`: a bag becomes a bag of captions, any other source a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.bags.caption_bag import BagOptions, BagReport, caption_bag
from smart_caption_ros.bags.journal import differing
from smart_caption_ros.bags.message_captioner import ModelSettings
from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.fleet.inputs import Input
from smart_caption_ros.fleet.loading import loaded_captioner, loaded_message_captioner
from smart_caption_ros.sources import SourceError, captioned_frames, open_source


@dataclass(frozen=True)
class FramesReport:
    """What came of a source that is no bag."""

    output: Path
    images: int
    failed: int
    first_problem: str
    was_complete: bool = False
    damage: str = ""

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {"output": str(self.output), "images": self.images, "failed": self.failed}


@dataclass(frozen=True)
class DescribeBag:
    """A bag that becomes a bag of captions."""

    name: str
    bag: Path
    output: Path
    model: ModelSettings
    options: BagOptions

    def run(self) -> BagReport:
        """Caption the bag, or go on where an earlier attempt ended."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        return caption_bag(self.bag, self.output, loaded_message_captioner(self.model), self.options)


@dataclass(frozen=True)
class DescribeFrames:
    """A sequence, a folder of images or a video that becomes a file of JSON lines, as `describe --json` prints them.

    The first line says what the captions were made from; the others have no durations, so that they are the same in
    every run.
    """

    name: str
    source: Path
    output: Path
    model: ModelSettings
    every: int
    force: bool

    def run(self) -> FramesReport:
        """Caption the frames, unless an earlier run did."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        captioner, messages = loaded_captioner(self.model), loaded_message_captioner(self.model)
        settings = {**messages.facts, "source": self.source.name, "every": self.every}
        if self.output.exists() and not self.force:
            return self._complete(settings)
        source = open_source(self.source)
        lines: list[str] = []
        problems: list[str] = []
        for frame in captioned_frames.describe(captioner, [source], self.every, messages.coverage):
            values = captioned_frames.to_json(frame)
            values.pop("timing_ms", None)
            lines.append(json.dumps(values))
            problems += [frame.error] if frame.error else []
        report = FramesReport(self.output, len(lines), len(problems), problems[0] if problems else "")
        provenance = {"settings": settings, **report.to_json(), "first_problem": report.first_problem}
        provenance["output"] = self.output.name
        write_text_atomically(self.output, "\n".join([json.dumps({"provenance": provenance}), *lines]) + "\n")
        return report

    def _complete(self, settings: dict[str, Any]) -> FramesReport:
        try:
            with self.output.open(encoding="utf-8") as file:
                made = json.loads(file.readline())["provenance"]
        except (ValueError, KeyError, TypeError):
            raise SourceError(f"{self.output} exists, and is not a file of captions: remove it") from None
        if other := differing(made["settings"], settings):
            raise SourceError(f"{self.output} exists and was made with {other}: replace it with --force")
        return FramesReport(self.output, made["images"], made["failed"], made["first_problem"], was_complete=True)


def shards(
    inputs: Sequence[Input], folder: Path, model: ModelSettings, options: BagOptions
) -> list[DescribeBag | DescribeFrames]:
    """Return the work: each input becomes a file of its name in the folder.

    Raises:
        SourceError: an option is for bags alone, and an input is no bag.
    """
    works: list[DescribeBag | DescribeFrames] = []
    folder = folder.absolute()  # workers have other working directories
    for source in inputs:
        path = source.path.absolute()
        if source.is_bag:
            works.append(DescribeBag(source.name, path, folder / f"{source.name}.mcap", model, options))
            continue
        if options.thinning.rate_hz is not None or options.topics or options.with_images:
            raise SourceError(f"{source.path} is no bag: topics, a rate and copied images are for bags alone")
        output = folder / f"{source.name}.jsonl"
        works.append(DescribeFrames(source.name, path, output, model, options.thinning.every, options.force))
    return works
