"""Shards of `smart-caption describe`: a bag becomes a bag of captions, any other source a file of JSON lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from smart_caption_ros.bags.caption_bag import BagOptions, BagReport, caption_bag
from smart_caption_ros.bags.message_captioner import MessageCaptioner, ModelSettings
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.fleet.inputs import Input
from smart_caption_ros.json_text import json_text
from smart_caption_ros.sources import SourceError, captioned_frames, open_source


@lru_cache(maxsize=1)
def loaded_captioner(model: ModelSettings) -> Captioner:
    """Load a captioner, which a worker keeps from shard to shard; raises what :meth:`Captioner.from_bundle` raises."""
    return model.load_captioner()


@lru_cache(maxsize=1)
def loaded_message_captioner(model: ModelSettings) -> MessageCaptioner:
    """Load what captions image messages; raises what :func:`loaded_captioner` raises, and CoverageError."""
    return MessageCaptioner(loaded_captioner(model), model.trust)


@dataclass(frozen=True)
class FramesReport:
    """What came of a source that is no bag."""

    output: Path
    images: int
    failed: int
    first_problem: str
    damage: str = ""

    def to_json(self) -> dict[str, Any]:
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
        self.output.parent.mkdir(parents=True, exist_ok=True)
        return caption_bag(self.bag, self.output, loaded_message_captioner(self.model), self.options)


@dataclass(frozen=True)
class DescribeFrames:
    """A sequence, a folder of images or a video that becomes a file of JSON lines, as `describe --json` prints them.

    They have neither durations nor the time of captioning, so that they are the same in every run.
    """

    name: str
    source: Path
    output: Path
    model: ModelSettings
    every: int

    def run(self) -> FramesReport:
        self.output.parent.mkdir(parents=True, exist_ok=True)
        captioner, coverage = loaded_captioner(self.model), loaded_message_captioner(self.model).coverage
        lines: list[str] = []
        problems: list[str] = []
        source = open_source(self.source)
        for frame in captioned_frames.describe(captioner, [source], self.every, coverage, self.model.trust):
            values = frame.record.to_json()
            del values["timing_ms"], values["received"]
            lines.append(json_text(values) + "\n")
            problems += [frame.error] if frame.error else []
        write_text_atomically(self.output, "".join(lines), [self.source])
        return FramesReport(self.output, len(lines), len(problems), problems[0] if problems else "")


def shards(
    inputs: Sequence[Input], folder: Path, model: ModelSettings, options: BagOptions
) -> list[DescribeBag | DescribeFrames]:
    """Return the work: each input becomes a file of its name in the folder.

    Raises SourceError where an option is for bags alone, and an input is no bag.
    """
    works: list[DescribeBag | DescribeFrames] = []
    folder = folder.absolute()  # workers have other working directories
    for source in inputs:
        path = source.path.absolute()
        if source.is_bag:
            works.append(DescribeBag(source.name, path, folder / f"{source.name}.mcap", model, options))
            continue
        if options.topics or options.with_images:
            raise SourceError(f"{source.path} is no bag: topics and copied images are for bags alone")
        output = folder / f"{source.name}.jsonl"
        works.append(DescribeFrames(source.name, path, output, model, options.every))
    return works
