"""Rendering sequences in several processes, each with a Blender of its own."""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from training.datagen.household.blender import Stage, require_bpy
from training.datagen.household.captions import CaptionWriter
from training.datagen.household.errors import HouseholdError
from training.datagen.household.files import Root
from training.datagen.household.photometric import develop
from training.datagen.household.sequences import Sequence, Settings, noise_of, plan, words_of

# As many frames as a process takes at once. It keeps its scene for the next few, which are mostly the same sequence's.
_CHUNK = 4


@dataclass(frozen=True)
class Report:
    """What a run did."""

    rendered: int
    skipped: int
    """Frames that were there already."""
    seconds: float

    @property
    def frames_per_second(self) -> float:
        return self.rendered / self.seconds if self.seconds > 0 else 0.0


def generate(folder: Path, settings: Settings, sequences: int, *, processes: int, quiet: bool = False) -> Report:
    """Render what is missing of sequences 0 to ``sequences`` - 1, and write labels and captions.

    A frame that was finished is never rendered again, whatever ended the run before.

    Raises:
        HouseholdError: Blender is missing, the folder holds something else, or a process died.
    """
    root = Root(folder)
    root.open(settings)
    missing = {number: root.missing(number, settings.frames) for number in range(sequences)}
    total = sum(map(len, missing.values()))
    if total:
        require_bpy()
    started = time.perf_counter()
    everything = sequences * settings.frames
    with tqdm(total=everything, initial=everything - total, unit="frame", disable=quiet) as bar:
        for number, frames in _rendered(folder, settings, missing, processes) if total else ():
            bar.update(frames)
            # Two parts of a sequence may have been done by the time that the first is looked at.
            if not root.is_finished(number) and not root.missing(number, settings.frames):
                root.finish(plan(settings, number), settings.frames)
    seconds = time.perf_counter() - started
    # Killed between a sequence's last frame and its labels.
    for number in range(sequences):
        if not root.is_finished(number):
            root.finish(plan(settings, number), settings.frames)
    write_captions(root, settings, sequences)
    return Report(total, everything - total, seconds)


def write_captions(root: Root, settings: Settings, sequences: int) -> None:
    """Write the captions of finished sequences, from what their frames show."""
    captions = {}
    for number in range(sequences):
        sequence = plan(settings, number)
        writer = CaptionWriter(sequence.scene, settings.camera)
        for frame, visible in root.visible(number).items():
            captions[number, frame] = writer.write(sequence.poses[frame], visible, words_of(settings, number, frame))
    root.write_captions(settings, captions)


def _rendered(
    folder: Path, settings: Settings, missing: dict[int, list[int]], processes: int
) -> Iterator[tuple[int, int]]:
    """Render the missing frames; yields a sequence's number and how many more of its frames there are, as they come."""
    threads = max(1, (os.cpu_count() or 1) // processes)
    chunks = [
        (number, frames[i : i + _CHUNK]) for number, frames in missing.items() for i in range(0, len(frames), _CHUNK)
    ]
    pool = ProcessPoolExecutor(
        processes, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(os.getpid(),)
    )
    try:
        work = {
            pool.submit(_render_chunk, folder, settings, number, frames, threads): (number, len(frames))
            for number, frames in chunks
        }
        for finished in as_completed(work):
            finished.result()
            yield work[finished]
    except BrokenProcessPool:
        raise HouseholdError(
            "a rendering process died, perhaps for want of memory; the same command goes on where it was, "
            "with --processes 1 it needs the least"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(parent: int) -> None:
    """Make the process end with the one that started it, even where that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_staged: tuple[Settings, Sequence, Stage] | None = None


def _render_chunk(folder: Path, settings: Settings, number: int, frames: list[int], threads: int) -> None:
    """Render frames of a sequence."""
    global _staged
    if _staged is None or _staged[0] != settings or _staged[1].number != number:
        sequence = plan(settings, number)
        _staged = (
            settings,
            sequence,
            Stage(sequence.scene, settings.camera, samples=settings.samples, threads=threads),
        )
    _, sequence, stage = _staged
    root = Root(folder)
    for frame in frames:
        light, index = stage.render(sequence.poses[frame], seed=frame)
        image_bgr = develop(light, sequence.look, noise_of(settings, number, frame))
        root.write_frame(sequence, frame, image_bgr, index)
