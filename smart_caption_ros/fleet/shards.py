"""Shards of `smart-caption describe --shards`: a bag becomes a bag of captions, another source a JSON lines file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """Load a captioner, which a worker keeps for its next shards; raises as :meth:`Captioner.from_bundle`."""
    return model.load_captioner()


@lru_cache(maxsize=1)
def loaded_message_captioner(model: ModelSettings) -> MessageCaptioner:
    """Load a captioner of image messages; raises as :func:`loaded_captioner`, and CoverageError."""
    return MessageCaptioner(loaded_captioner(model), model.trust)


@dataclass(frozen=True)
class FramesReport:
    """Result of captioning a source that is not a bag; fields as in BagReport."""

    output: Path
    images: int
    failed: int
    first_problem: str
    left_out: tuple[str, ...] = ()
    """What the source left out, a sentence each."""
    damage: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"output": str(self.output), "images": self.images, "failed": self.failed, "left_out": self.left_out}


@dataclass(frozen=True)
class DescribeInput:
    """A bag that becomes a bag of captions, or another source that becomes a file of JSON lines.

    The lines are those that `describe --json` prints, without durations and the time of captioning, so that they are
    the same in every run.
    """

    source: Input
    output: Path
    model: ModelSettings
    options: BagOptions

    @property
    def name(self) -> str:
        return self.source.name

    def run(self) -> BagReport | FramesReport:
        self.output.parent.mkdir(parents=True, exist_ok=True)
        path, captioner = self.source.path, loaded_message_captioner(self.model)
        if self.source.is_bag:
            return caption_bag(path, self.output, captioner, self.options)
        lines: list[str] = []
        problems: list[str] = []
        source = open_source(path)
        for frame in captioned_frames.describe(
            loaded_captioner(self.model), [source], self.options.every, captioner.coverage, self.model.trust
        ):
            values = frame.record.to_json()
            del values["timing_ms"], values["received"]
            lines.append(json_text(values) + "\n")
            problems += [frame.error] if frame.error else []
        write_text_atomically(self.output, "".join(lines), [path])
        return FramesReport(
            self.output, len(lines), len(problems), problems[0] if problems else "", tuple(source.notes)
        )


def shards(inputs: Sequence[Input], folder: Path, model: ModelSettings, options: BagOptions) -> list[DescribeInput]:
    """Return a shard for each input, whose output is a file of the input's name in the folder.

    Raises SourceError if an option is for bags alone and an input is not a bag.
    """
    works = []
    for source in inputs:
        if (options.topics or options.with_images) and not source.is_bag:
            raise SourceError(f"{source.path} is no bag: topics and copied images are for bags alone")
        output = folder / f"{source.name}{'.mcap' if source.is_bag else '.jsonl'}"
        # Workers have other working directories.
        works.append(DescribeInput(replace(source, path=source.path.absolute()), output.absolute(), model, options))
    return works
