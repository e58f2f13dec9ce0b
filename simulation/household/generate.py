"""Generation of a data set: frames are rendered by several processes, each with its own Blender."""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tqdm import tqdm

from simulation.household.blender.renderer import BlenderRenderer, require_bpy
from simulation.household.camera import photograph
from simulation.household.captions.sentences import CaptionWriter
from simulation.household.dataset_folder import DatasetFolder
from simulation.household.errors import HouseholdError
from simulation.household.sequences import (
    RenderSettings,
    SequencePlan,
    caption_generator,
    noise_generator,
    plan_sequence,
)

_FRAMES_PER_TASK = 4
"""Frames that a process renders in one task; it keeps the scene for its next task, mostly of the same sequence."""


@dataclass(frozen=True)
class GenerationReport:
    """Summary of a run."""

    rendered: int
    """Frames."""
    skipped: int
    """Frames that an earlier run had rendered."""
    seconds: float

    @property
    def frames_per_second(self) -> float:
        return self.rendered / self.seconds if self.seconds > 0 else 0.0


def generate(
    folder: Path, settings: RenderSettings, sequences: int, *, processes: int, quiet: bool = False
) -> GenerationReport:
    """Render the missing frames of sequences 0 to ``sequences`` - 1, and write labels and captions.

    A frame that was finished is never rendered again, whatever ended the run before.

    Args:
        folder: of the data set.
        settings: of every sequence.
        sequences: number of sequences.
        processes: number of rendering processes.
        quiet: whether to hide the progress bar.

    Raises:
        HouseholdError: Blender is missing, the folder has other content, or a process died.
    """
    dataset = DatasetFolder(folder)
    dataset.open(settings)
    missing = {number: dataset.missing_frames(number, settings.frames) for number in range(sequences)}
    to_render = sum(map(len, missing.values()))
    if to_render:
        require_bpy()
    started = time.perf_counter()
    total = sequences * settings.frames
    with tqdm(total=total, initial=total - to_render, unit="frame", disable=quiet) as bar:
        for number, frames in _render_missing(folder, settings, missing, processes) if to_render else ():
            bar.update(frames)
            # Several tasks of a sequence may have ended before the first of them is reported.
            if not dataset.is_finished(number) and not dataset.missing_frames(number, settings.frames):
                dataset.finish_sequence(plan_sequence(settings, number), settings.frames)
    seconds = time.perf_counter() - started
    # An earlier run may have been killed between a sequence's last frame and its labels.
    for number in range(sequences):
        if not dataset.is_finished(number):
            dataset.finish_sequence(plan_sequence(settings, number), settings.frames)
    write_captions(dataset, settings, sequences)
    return GenerationReport(to_render, total - to_render, seconds)


def write_captions(dataset: DatasetFolder, settings: RenderSettings, sequences: int) -> None:
    """Write the captions of the finished sequences 0 to ``sequences`` - 1."""
    captions = {}
    for number in range(sequences):
        sequence = plan_sequence(settings, number)
        writer = CaptionWriter(sequence.scene, settings.camera)
        for frame, extents in dataset.visible_extents(number).items():
            rng = caption_generator(settings, number, frame)
            captions[number, frame] = writer.write(sequence.poses[frame], extents, rng)
    dataset.write_captions(settings, captions)


def _render_missing(
    folder: Path, settings: RenderSettings, missing: Mapping[int, list[int]], processes: int
) -> Iterator[tuple[int, int]]:
    """Render frames in parallel.

    Args:
        folder: of the data set.
        settings: of every sequence.
        missing: frames to render, by sequence.
        processes: number of rendering processes.

    Yields:
        Number of a sequence and how many more of its frames are done, in the order of completion.
    """
    threads = max(1, (os.cpu_count() or 1) // processes)
    tasks = [
        (number, frames[i : i + _FRAMES_PER_TASK])
        for number, frames in missing.items()
        for i in range(0, len(frames), _FRAMES_PER_TASK)
    ]
    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_exit_with_parent,
        initargs=(os.getpid(),),
    )
    try:
        futures = {
            pool.submit(_render_frames, folder, settings, number, frames, threads): (number, len(frames))
            for number, frames in tasks
        }
        for future in as_completed(futures):
            future.result()
            yield futures[future]
    except BrokenProcessPool:
        raise HouseholdError(
            "a rendering process died, perhaps because memory ran out; run the same command again to continue, "
            "with --processes 1 if memory is short"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _exit_with_parent(parent: int) -> None:
    """Make a rendering process exit when its parent does, even if the parent is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _loaded_sequence(settings: RenderSettings, number: int, threads: int) -> tuple[SequencePlan, BlenderRenderer]:
    """Plan a sequence and load its scene into Blender, which holds one scene at a time."""
    sequence = plan_sequence(settings, number)
    return sequence, BlenderRenderer(sequence.scene, settings.camera, samples=settings.samples, threads=threads)


def _render_frames(folder: Path, settings: RenderSettings, number: int, frames: list[int], threads: int) -> None:
    sequence, renderer = _loaded_sequence(settings, number, threads)
    dataset = DatasetFolder(folder)
    for frame in frames:
        light, instances = renderer.render(sequence.poses[frame], seed=frame)
        image_bgr = photograph(light, sequence.response, noise_generator(settings, number, frame))
        dataset.write_frame(sequence, frame, image_bgr, instances)
