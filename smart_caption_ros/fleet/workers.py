"""Shards of work, the processes that work on them, and retries of failed shards."""

import logging
import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from smart_caption_ros.captioning import BundleError, DetectorError, EngineError
from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.sources import SourceError
from smart_caption_ros.text import error_line

_FINAL = (BundleError, CoverageError, DetectorError, EngineError, SourceError, FileNotFoundError, ImportError)
"""Errors that a retry would raise again."""


class Work(Protocol):
    """A shard of the work; the shard and its result can be pickled."""

    @property
    def name(self) -> str:
        """Name of the shard in reports."""

    def run(self) -> Any:
        """Do the work."""


W = TypeVar("W", bound=Work)


@dataclass(frozen=True)
class Attempt:
    """Result of one attempt at a shard.

    Attributes:
        value: what the work returned; None after an error.
        error: one sentence; empty after success.
        is_final: whether a retry would have the same result.
    """

    value: Any = None
    error: str = ""
    is_final: bool = True


class Workers(Protocol):
    """Processes that work on shards."""

    @property
    def capacity(self) -> int:
        """Maximum number of shards in work at a time."""

    def submit(self, work: Work) -> Future[Attempt]:
        """Start work on a shard; at most :attr:`capacity` at a time. The future raises if the worker dies."""

    def close(self) -> None:
        """End the workers, even if they are working."""


class LocalWorkers:
    """Processes of this machine, which keep their loaded models for the next shards.

    Each process has its own pool, because the death of a process breaks its pool and fails all work in it. A process
    that has died, at work or idle, is replaced.
    """

    def __init__(self, jobs: int) -> None:
        self.capacity = jobs
        self._latest: dict[ProcessPoolExecutor, Future[Attempt]] = {}

    def submit(self, work: Work) -> Future[Attempt]:
        pool = next((pool for pool, future in self._latest.items() if future.done()), None) or ProcessPoolExecutor(
            1,
            # Not forked: a fork copies locks that threads of the engine may hold.
            multiprocessing.get_context("spawn"),
            initializer=_start_worker,
        )
        try:
            self._latest[pool] = pool.submit(attempt, work)
        except BrokenProcessPool:
            del self._latest[pool]
            return self.submit(work)
        return self._latest[pool]

    def close(self) -> None:
        for process in multiprocessing.active_children():
            process.terminate()
        for pool in self._latest:
            pool.shutdown()
        self._latest.clear()


def run_all(works: Sequence[W], workers: Workers, retries: int) -> Iterator[tuple[W, Attempt]]:
    """Yield every shard with its last attempt, in the order in which they end.

    Args:
        retries: maximum number of further attempts at a shard that failed, unless the error is final.
    """
    waiting, failures = deque(works), Counter[str]()
    running: dict[Future[Attempt], W] = {}
    while waiting or running:
        while waiting and len(running) < workers.capacity:
            work = waiting.popleft()
            running[workers.submit(work)] = work
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            work, ended = running.pop(future), _attempt_of(future)
            failures[work.name] += bool(ended.error)
            if ended.error and not ended.is_final and failures[work.name] <= retries:
                waiting.append(work)
            else:
                yield work, ended


def attempt(work: Work) -> Attempt:
    """Do the work of a shard; never raises an exception."""
    try:
        return Attempt(work.run())
    except _FINAL as error:
        return Attempt(error=error_line(error))
    except Exception as error:
        return Attempt(error=f"{type(error).__name__}: {error_line(error)}", is_final=False)


def _attempt_of(future: Future[Attempt]) -> Attempt:
    """Return the result of a worker; the failure of a worker that died is not final."""
    try:
        return future.result()
    except BrokenProcessPool:
        return Attempt(error="the worker process was killed or crashed", is_final=False)
    except Exception as error:  # Ray raises many kinds of exceptions for a worker that died or lacks the package
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
        return Attempt(error=f"a worker of the cluster failed: {reason}", is_final=False)


def _start_worker() -> None:
    """Prepare a worker process.

    The process ignores Ctrl-C, which the main process handles for all; ends with the main process, however that ends;
    and logs nothing, because the reports say what failed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_main_process, daemon=True).start()
    logging.getLogger("smart_caption_ros").addHandler(logging.NullHandler())


def _end_with_the_main_process() -> None:
    main_process = multiprocessing.parent_process()
    assert main_process is not None
    main_process.join()
    os._exit(1)
