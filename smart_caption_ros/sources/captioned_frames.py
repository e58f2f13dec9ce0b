"""Caption the frames of files, folders, videos, bags and cameras."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from smart_caption_ros.captioning import Captioner, EngineError
from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.grounding.named_objects import ground_caption
from smart_caption_ros.record import ACCEPT_ALL, CaptionRecord, CaptionStatus, Trust
from smart_caption_ros.sources import Frame, FrameSource, SourceError, open_source


@dataclass(frozen=True)
class CaptionedFrame:
    """A captioned frame, or the error of a source or frame that could not be read."""

    record: CaptionRecord
    """Its name is the address of the frame; its status is ERROR if there is no caption."""
    frame: Frame | None = None

    @property
    def error(self) -> str:
        """Why there is no caption, one sentence; empty if there is one."""
        return self.record.status_message if self.record.status is CaptionStatus.ERROR else ""

    @classmethod
    def unread(cls, source: str, address: str, error: str) -> "CaptionedFrame":
        """Create the entry of a frame or source that could not be read."""
        return cls(CaptionRecord.without_caption(CaptionStatus.ERROR, error, source=source, name=address))


Opened = FrameSource | CaptionedFrame


def open_all(specs: Sequence[str], topic: str | None = None) -> list[Opened]:
    """Open every source; in place of one that cannot be opened, return its error."""
    sources: list[Opened] = []
    for spec in specs:
        try:
            sources.append(open_source(spec, topic=topic))
        except SourceError as error:
            sources.append(CaptionedFrame.unread(spec, spec, str(error)))
    return sources


def count_frames(sources: Sequence[Opened], every: int = 1) -> int | None:
    """Count the frames that :func:`describe` will yield; None where a source does not know its length."""
    lengths = [source.known_length if isinstance(source, FrameSource) else 1 for source in sources]
    return None if None in lengths else sum(math.ceil(length / every) for length in lengths if length is not None)


def describe(
    captioner: Captioner | None,
    sources: Sequence[Opened],
    every: int = 1,
    coverage: NounCoverage | None = None,
    trust: Trust = ACCEPT_ALL,
) -> Iterator[CaptionedFrame]:
    """Caption every `every`-th frame of each source, in order; yield an error in place of what cannot be read.

    Args:
        captioner: may be None if no source could be opened.
        coverage: matches the nouns of each caption with its objects; None leaves that out.
    """
    for source in sources:
        if isinstance(source, CaptionedFrame):
            yield source
        elif captioner is not None:
            yield from _describe_source(captioner, source, every, coverage, trust)


def _describe_source(
    captioner: Captioner, source: FrameSource, every: int, coverage: NounCoverage | None, trust: Trust
) -> Iterator[CaptionedFrame]:
    def newly_skipped() -> Iterator[CaptionedFrame]:
        for skipped in source.newly_skipped():
            if skipped.index % every == 0:
                address = source.address_of(skipped)
                yield CaptionedFrame.unread(source.spec, address, f"cannot read {address}: {skipped.reason}")

    try:
        for frame in source.every(every):
            yield from newly_skipped()
            yield CaptionedFrame(caption_frame(captioner, source, frame, coverage, trust), frame)
        yield from newly_skipped()
    except SourceError as error:
        yield from newly_skipped()
        yield CaptionedFrame.unread(source.spec, source.spec, str(error))


def caption_frame(
    captioner: Captioner,
    source: FrameSource,
    frame: Frame,
    coverage: NounCoverage | None,
    trust: Trust = ACCEPT_ALL,
    **fields: Any,
) -> CaptionRecord:
    """Caption a frame of a source; one that cannot be captioned has the status ERROR.

    Args:
        coverage: matches the nouns of the caption with its objects; None leaves that out.
        fields: further fields of the record; its name is the address of the frame by default.
    """
    address, started_s = source.address_of(frame), time.monotonic()
    fields = {"source": source.spec, "name": address, "stamp_ns": frame.stamp_ns, **fields}
    try:
        caption = captioner.caption(frame.image_bgr)
        grounding = None if coverage is None else ground_caption(coverage, caption)
    except Exception as error:  # an engine may raise anything, and one frame must not cost the others
        kind = "" if isinstance(error, EngineError | ValueError) else f"{type(error).__name__}: "
        height, width = frame.image_bgr.shape[:2]
        return CaptionRecord.without_caption(
            CaptionStatus.ERROR,
            f"cannot caption {address}: {kind}{error}",
            image_size=(width, height),
            model=captioner.model,
            engine=captioner.engine,
            total_s=time.monotonic() - started_s,
            **fields,
        )
    return CaptionRecord.of(caption, grounding, trust=trust, has_detector=captioner.detector is not None, **fields)
