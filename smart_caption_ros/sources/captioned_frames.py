"""Everything in some files, folders, videos, bags and cameras, captioned."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning import Caption, Captioner, EngineError
from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.grounding.named_objects import Grounding, ground_caption
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.sources import Frame, FrameSource, SkippedFrame, SourceError, open_source
from smart_caption_ros.sources.image_folder import IMAGE_SUFFIXES
from smart_caption_ros.viewing import write_picture


@dataclass(frozen=True)
class Unreadable:
    """A source that could not be opened, and the sentence that says why."""

    spec: str
    reason: str


@dataclass(frozen=True)
class CaptionedFrame:
    """What came of one frame, or of one source that gave none: a frame with its caption, or an error."""

    address: str
    """Where the frame is from, as the caller spelled it."""
    frame: Frame | None = None
    caption: Caption | None = None
    grounding: Grounding | None = None
    """The nouns of the caption and the objects that they name; None if they were not requested."""
    error: str = ""
    """One sentence; empty where there is a caption."""


def open_all(specs: Sequence[str], topic: str | None = None) -> list[FrameSource | Unreadable]:
    """Open every source, and keep the place of those that cannot be opened."""
    sources: list[FrameSource | Unreadable] = []
    for spec in specs:
        try:
            sources.append(open_source(spec, topic=topic))
        except SourceError as error:
            sources.append(Unreadable(spec, str(error)))
    return sources


def count_frames(sources: Sequence[FrameSource | Unreadable], every: int = 1) -> int | None:
    """Count the frames that :func:`describe` will yield; None where a source does not know its length."""
    lengths = [1 if isinstance(source, Unreadable) else source.known_length for source in sources]
    if None in lengths:
        return None
    return sum(math.ceil(length / every) for length in lengths if length is not None)


def describe(
    captioner: Captioner | None,
    sources: Sequence[FrameSource | Unreadable],
    every: int = 1,
    coverage: NounCoverage | None = None,
) -> Iterator[CaptionedFrame]:
    """Caption every `every`-th frame of each source, in order; whatever cannot be read has its answer too.

    Args:
        captioner: None is enough where no source could be opened.
        sources: from `open_all`.
        every: 1 for all frames.
        coverage: matches the nouns of each caption with its objects; None leaves that out.
    """
    for source in sources:
        if isinstance(source, Unreadable):
            yield CaptionedFrame(source.spec, error=source.reason)
        elif captioner is not None:
            yield from _describe_source(captioner, source, every, coverage)


def _describe_source(
    captioner: Captioner, source: FrameSource, every: int, coverage: NounCoverage | None
) -> Iterator[CaptionedFrame]:
    reported = 0

    def newly_skipped() -> Iterator[CaptionedFrame]:
        nonlocal reported
        new, reported = source.skipped_frames[reported:], len(source.skipped_frames)
        yield from (_unread(source, skipped) for skipped in new if skipped.index % every == 0)

    try:
        for frame in source.every(every):
            yield from newly_skipped()
            yield _describe_frame(captioner, source, frame, coverage)
        yield from newly_skipped()
    except SourceError as error:
        yield from newly_skipped()
        yield CaptionedFrame(source.spec, error=str(error))


def _describe_frame(
    captioner: Captioner, source: FrameSource, frame: Frame, coverage: NounCoverage | None
) -> CaptionedFrame:
    address = source.address_of(frame)
    try:
        caption = captioner.caption(frame.image_bgr)
    except (EngineError, ValueError) as error:
        return CaptionedFrame(address, frame, error=f"cannot caption {address}: {error}")
    return CaptionedFrame(address, frame, caption, ground_caption(coverage, caption) if coverage is not None else None)


def _unread(source: FrameSource, skipped: SkippedFrame) -> CaptionedFrame:
    address = source.address_of(skipped)
    return CaptionedFrame(address, error=f"cannot read {address}: {skipped.reason}")


def to_json(captioned: CaptionedFrame) -> dict[str, Any]:
    """Convert to JSON values: the record of the caption, with the status "error" where there is none."""
    frame = captioned.frame
    fields: dict[str, Any] = {
        "name": captioned.address,
        "stamp_ns": None if frame is None else frame.stamp_ns,
    }
    if captioned.caption is None:
        return CaptionRecord.without_caption(CaptionStatus.ERROR, captioned.error, **fields).to_json()
    return CaptionRecord.of(captioned.caption, captioned.grounding, **fields).to_json()


class OverlayFolder:
    """Writes captioned frames with their captions drawn, each under the name of its frame."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder where it is missing; raises OSError where that fails."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self._taken)

    def write(self, frame_name: str, overlay_bgr: NDArray[np.uint8]) -> None:
        """Writes a frame with its caption drawn, uint8 HxWx3; raises OSError where the file cannot be written."""
        path = Path(frame_name)
        stem = re.sub(r"[^\w.-]+", "_", path.stem if path.suffix.lower() in IMAGE_SUFFIXES else frame_name)
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        write_picture(self.folder / f"{name}.png", overlay_bgr)
