"""Hand shards to workers, and those that failed once more."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from smart_caption_ros.fleet.work import Attempt, Work

W = TypeVar("W", bound=Work)


class Workers(Protocol):
    """Processes that work on shards."""

    @property
    def capacity(self) -> int:
        """How many shards are worth being started at a time."""

    def start(self, work: Work) -> None:
        """Start to work on a shard; at most :attr:`capacity` at a time."""

    def finished(self) -> tuple[Work, Attempt]:
        """Wait until an attempt at one of the started shards ends."""

    def close(self) -> None:
        """End the workers, whatever they work on."""


def run_all(works: Sequence[W], workers: Workers, retries: int) -> Iterator[tuple[W, Attempt]]:
    """Yield every shard with its last attempt, in the order in which they end.

    Args:
        works: the shards.
        workers: work on them; the caller closes them.
        retries: how many more attempts a shard has that failed, unless another attempt would come to the same.
    """
    waiting, started, failures = deque(works), 0, Counter[str]()
    while waiting or started:
        while waiting and started < workers.capacity:
            workers.start(waiting.popleft())
            started += 1
        work, ended = workers.finished()
        started -= 1
        failures[work.name] += bool(ended.error)
        if ended.error and not ended.is_final and failures[work.name] <= retries:
            waiting.append(work)  # type: ignore[arg-type] # one of those that were started
        else:
            yield work, ended  # type: ignore[misc]
