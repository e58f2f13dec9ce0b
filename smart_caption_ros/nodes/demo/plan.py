"""The options of the demo and the frames that it publishes."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smart_caption_ros.sources import open_source

DEFAULT_SOURCE = "sample:household"

_SEQUENCE_FRAMES = 16


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo.

    Attributes:
        output: folder for captions.jsonl, overlays/ and contact_sheet.png; created if missing.
        every: every Nth frame of the source; None takes all, and of sequences as many as span all of them in 16
            frames or fewer.
    """

    source: str
    output: Path
    rate_hz: float = 1.0
    timeout_s: float = 120.0
    max_frames: int = 60
    every: int | None = None


@dataclass(frozen=True)
class DemoPlan:
    """The frames to publish. Their names are known beforehand, except for a live camera.

    Attributes:
        addresses: where each frame comes from; empty for a live camera.
    """

    description: str
    names: tuple[str, ...] | None
    addresses: tuple[str, ...]
    limit: int
    every: int
    knows_objects: bool
    notes: tuple[str, ...] = ()

    @property
    def known_frames(self) -> int:
        return len(self.names or ())

    def name(self, index: int) -> str:
        return self.names[index] if self.names and index < len(self.names) else f"frame {index}"

    def address(self, index: int) -> str:
        """Return where a frame comes from, or its name where that is unknown."""
        return self.addresses[index] if index < len(self.addresses) else self.name(index)


def plan_demo(spec: str, max_frames: int, every: int | None, on_frame: Callable[[], None] = lambda: None) -> DemoPlan:
    """Read the names of the frames to publish.

    Args:
        every: every Nth frame; None takes all, and of sequences as many as span all of them in 16 frames or fewer.

    Raises:
        SourceError: the source cannot be opened or read.
    """
    source = open_source(spec)
    length = source.known_length
    if every is None:
        every = math.ceil(length / _SEQUENCE_FRAMES) if source.knows_objects and length else 1
    if length is None:
        return DemoPlan(source.description, None, (), max_frames, every, source.knows_objects)
    frames = []
    for frame in itertools.islice(source.every(every), max_frames):
        frames.append((frame.name, source.address_of(frame)))
        on_frame()
    selected = math.ceil(length / every)
    notes = []
    if every > 1:
        notes.append(f"{source.description}: the demo takes {selected} of {length} frames, one of {every}")
    if selected > max_frames:
        notes.append(f"{source.description}: the demo takes the first {max_frames} of {selected}")
    names, addresses = zip(*frames, strict=True)
    return DemoPlan(source.description, names, addresses, max_frames, every, source.knows_objects, tuple(notes))
