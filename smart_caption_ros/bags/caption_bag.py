"""Caption a whole bag into a new one; a run that was killed is gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from smart_caption_ros.bags.bag_writer import (
    OUTPUT_SUFFIXES,
    read_provenance,
    settings_of,
    write_captioned_bag,
)
from smart_caption_ros.bags.cameras import Camera, Thinning, choose_cameras
from smart_caption_ros.bags.journal import SUFFIX, Journal, differing, remove_journal
from smart_caption_ros.bags.message_captioner import MessageCaptioner
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.bag_storage import BagStorage
from smart_caption_ros.text import counted


@dataclass(frozen=True)
class BagOptions:
    """How a bag is captioned.

    Attributes:
        topics: image topics; empty for every camera.
        thinning: which of their images.
        with_images: whether the images are copied beside the captions.
        force: whether an output or a journal of other settings is replaced.
    """

    topics: tuple[str, ...] = ()
    thinning: Thinning = field(default_factory=Thinning)
    with_images: bool = False
    force: bool = False


@dataclass(frozen=True)
class BagReport:
    """What came of a bag.

    Attributes:
        output: the bag of captions.
        caption_topics: the topic of the captions of each camera.
        images: number of images that were selected, unreadable ones included.
        captioned: how many of them this run captioned.
        kept: how many of them an earlier run had captioned.
        failed: how many of them have no caption because of a problem.
        first_problem: the problem of the first of those; empty if there is none.
        recording_s: time of the recording from the first selected image to the last one.
        work_s: time that this run took, without loading the model.
        damage: one sentence about a bag that was cut off; empty for a whole one.
        left_out: a sentence for each image topic that was left out.
        was_complete: whether an earlier run had completed the output, so that nothing was done.
    """

    output: Path
    caption_topics: tuple[str, ...]
    images: int
    captioned: int
    kept: int
    failed: int
    first_problem: str
    recording_s: float
    work_s: float
    damage: str
    left_out: tuple[str, ...]
    was_complete: bool = False

    @property
    def speed(self) -> float | None:
        """Seconds of the recording per second of work; None if an earlier run did part of the work."""
        return self.recording_s / self.work_s if self.captioned and not self.kept and self.work_s else None

    def sentences(self) -> list[str]:
        """Return what a person wants to know, in sentences."""
        captioned = f"{self.images - self.failed} of " if self.failed else ""
        cameras = counted(len(self.caption_topics), "camera")
        what = f"{captioned}{counted(self.images, 'image')} of {cameras} ({', '.join(self.caption_topics)})"
        if self.was_complete:
            return [*self.left_out, f"{self.output} is complete already: {what}", *self._problems()]
        kept = f", {self.kept} of them by an earlier run" if self.kept else ""
        pace = f"{self.recording_s:.1f} s of recording in {self.work_s:.1f} s"
        pace += f", {self.speed:.2f} times real time" if self.speed else ""
        return [*self.left_out, f"{self.output}: captioned {what}{kept}; {pace}", *self._problems()]

    def _problems(self) -> list[str]:
        images = counted(self.failed, "image")
        problems = [f"{images} without a caption; the first: {self.first_problem}"] if self.failed else []
        return [*problems, self.damage] if self.damage else problems

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**asdict(self), "output": str(self.output), "speed": self.speed}


def check_output(output: Path) -> None:
    """Refuse an output that is no .mcap or .db3 file, or whose folder is missing.

    Raises:
        SourceError: one sentence.
    """
    if output.suffix not in OUTPUT_SUFFIXES:
        raise SourceError(f"{output} must end in {' or '.join(OUTPUT_SUFFIXES)}")
    if not output.parent.is_dir():
        raise SourceError(f"there is no folder {output.parent} to write {output.name} into")
    if output.is_dir():
        raise SourceError(f"{output} is a folder: name another output, or remove it")


def caption_bag(
    bag: Path,
    output: Path,
    captioner: MessageCaptioner,
    options: BagOptions,
    progress: Callable[[int], object] = lambda images: None,
) -> BagReport:
    """Caption the images of a bag into a new bag.

    A journal beside the output keeps the captions until the output is complete: the next call with the same settings
    goes on where this one ended, and the output is the same to the byte as that of a single run.

    Args:
        bag: folder or file of the bag.
        output: .mcap or .db3 file.
        captioner: captions the images.
        options: what to caption.
        progress: called with the number of images that have been dealt with since the last call.

    Raises:
        SourceError: the bag holds no such images, the output exists and has other settings, or cannot be written.
        SourceError: the bag cannot be read.
    """
    check_output(output)
    started_s = time.monotonic()
    with BagStorage(bag, salvage=True) as storage:
        cameras, left_out = choose_cameras(storage, options.topics)
        settings = settings_of(
            storage, cameras, options.thinning, with_images=options.with_images, model=captioner.facts
        )
        if output.exists() and output.samefile(bag):
            raise SourceError(f"{output} is the bag itself: name another output")
        if output.exists() and not options.force:
            return _complete(output, settings, cameras, left_out)
        journal_path = output.with_name(output.name + SUFFIX)
        if options.force:
            remove_journal(journal_path)
        journal = Journal(journal_path, settings)
        try:
            counts = _caption_images(storage, cameras, options.thinning, captioner, journal, progress)
            failed, first_problem = journal.problems()
            result: dict[str, Any] = {
                "images": counts.images,
                "failed": failed,
                "first_problem": first_problem,
                "recording_s": counts.recording_s,
                "damage": _damage(storage, counts.read),
            }
            provenance = {"settings": settings, **result}
            write_captioned_bag(output, cameras, journal, provenance, storage if options.with_images else None)
            journal.remove()
        finally:
            journal.close()
    return BagReport(
        output,
        tuple(camera.caption_topic for camera in cameras),
        captioned=counts.captioned,
        kept=counts.images - counts.captioned,
        work_s=time.monotonic() - started_s,
        left_out=tuple(left_out),
        **result,
    )


@dataclass
class _Counts:
    """Images that were read, selected and captioned, and the span of their recording."""

    read: int = 0
    images: int = 0
    captioned: int = 0
    first_ns: int = 0
    last_ns: int = 0

    @property
    def recording_s(self) -> float:
        return (self.last_ns - self.first_ns) * 1e-9


def _caption_images(
    storage: BagStorage,
    cameras: list[Camera],
    thinning: Thinning,
    captioner: MessageCaptioner,
    journal: Journal,
    progress: Callable[[int], object],
) -> _Counts:
    counts = _Counts()
    numbers = {camera.image_topic: number for number, camera in enumerate(cameras)}
    indices = [0] * len(cameras)
    selections = [thinning.start() for _ in cameras]
    for stored in storage.messages(list(numbers)):
        camera = numbers[stored.topic]
        index, indices[camera] = indices[camera], indices[camera] + 1
        counts.read += 1
        if selections[camera].wants(stored.recorded_ns):
            counts.first_ns = min(stored.recorded_ns, counts.first_ns) if counts.images else stored.recorded_ns
            counts.last_ns = max(stored.recorded_ns, counts.last_ns)
            counts.images += 1
            if journal.get(camera, index) is None:
                journal.put(camera, index, captioner.caption(stored, cameras[camera].name))
                counts.captioned += 1
        progress(1)
    return counts


def _damage(storage: BagStorage, read: int) -> str:
    if not storage.damage:
        return ""
    readable = sum(topic.count for topic in storage.topics)
    return (
        f"{storage.path.name} is cut off or damaged ({storage.damage}): {readable} of its messages can be read, "
        f"{read} of them images of these topics"
    )


def _complete(output: Path, settings: dict[str, Any], cameras: list[Camera], left_out: list[str]) -> BagReport:
    """Report what an earlier run completed; refuse it if it had other settings."""
    provenance = read_provenance(output)
    other = differing(provenance["settings"], settings)
    if other:
        raise SourceError(f"{output} exists and was made with {other}: name another output, or replace it with --force")
    topics = tuple(camera.caption_topic for camera in cameras)
    facts = {name: provenance[name] for name in ("images", "failed", "first_problem", "recording_s", "damage")}
    kept = facts["images"]
    return BagReport(
        output, topics, captioned=0, kept=kept, work_s=0.0, left_out=tuple(left_out), was_complete=True, **facts
    )
