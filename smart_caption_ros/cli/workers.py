"""The options of commands that work on many inputs, and the workers that they select."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from smart_caption_ros.cli.options import Option

if TYPE_CHECKING:
    from smart_caption_ros.fleet.workers import Workers


@dataclass(frozen=True)
class WorkerOptions:
    """Where the work is done."""

    jobs: Annotated[int | None, Option(min=1, help="Number of worker processes.")] = None
    ray: Annotated[
        str | None,
        Option(help="Work on a Ray cluster: local (started on this machine), auto, HOST:PORT or ray://HOST:PORT."),
    ] = None
    retries: Annotated[int, Option(min=0, help="Further attempts at a part of the work that failed.")] = 2

    @property
    def has_workers(self) -> bool:
        """Whether worker processes were asked for."""
        return self.jobs is not None or self.ray is not None

    @property
    def threads(self) -> int:
        """CPU threads of a worker: processes share the cores, and a task of Ray has one CPU."""
        return 1 if self.ray is not None else max(1, (os.cpu_count() or 1) // (self.jobs or 1))


def start_workers(options: WorkerOptions) -> Workers:
    """Start the workers that the options select; the caller closes them.

    Raises:
        SourceError: there is no Ray, or no cluster.
    """
    from smart_caption_ros.fleet.ray_workers import RayWorkers
    from smart_caption_ros.fleet.workers import LocalWorkers

    return LocalWorkers(options.jobs or 1) if options.ray is None else RayWorkers(options.ray, options.jobs)
