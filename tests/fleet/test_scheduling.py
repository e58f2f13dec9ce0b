"""Shards in worker processes: retried, replaced and reported."""

from __future__ import annotations

import os
import time
from pathlib import Path

from smart_caption_ros.fleet.local_workers import LocalWorkers
from smart_caption_ros.fleet.scheduling import run_all
from smart_caption_ros.fleet.work import Attempt, Work, attempt
from tests.fleet.works import Failing, Square


class InProcess:
    """Works here, in the order in which shards were started."""

    def __init__(self) -> None:
        self.capacity = 2
        self._started: list[Work] = []

    def start(self, work: Work) -> None:
        assert len(self._started) < self.capacity
        self._started.append(work)

    def finished(self) -> tuple[Work, Attempt]:
        work = self._started.pop(0)
        return work, attempt(work)

    def close(self) -> None:
        self._started.clear()


def attempts_in(folder: Path, number: int) -> int:
    return len(list(folder.glob(f"{number}-*")))


def test_a_shard_that_fails_is_tried_again_a_bounded_number_of_times(tmp_path: Path) -> None:
    works = [Square(1), Failing(2, tmp_path, attempts=2), Failing(3, tmp_path, attempts=9)]
    ended = {work.number: result for work, result in run_all(works, InProcess(), retries=2)}
    assert ended[1] == Attempt(1)
    assert ended[2] == Attempt(4)
    assert ended[3].error == "RuntimeError: out of memory"
    assert (attempts_in(tmp_path, 2), attempts_in(tmp_path, 3)) == (3, 3)


def test_what_another_attempt_would_end_with_is_not_tried_again(tmp_path: Path) -> None:
    ((_, result),) = run_all([Failing(4, tmp_path, attempts=9, kind="input")], InProcess(), retries=2)
    assert result.error == "the bag is empty"
    assert attempts_in(tmp_path, 4) == 1


def test_worker_processes_that_die_are_replaced_and_all_end_with_the_work(tmp_path: Path) -> None:
    works = [*map(Square, range(6)), Failing(7, tmp_path, kind="death"), Failing(8, tmp_path, attempts=9, kind="death")]
    workers = LocalWorkers(2)
    try:
        ended = {work.number: result for work, result in run_all(works, workers, retries=1)}
        pids = [process.pid for process in workers._processes.values()]
    finally:
        workers.close()
    assert {number: result.value for number, result in ended.items()} == {
        **{number: number**2 for number in range(6)},
        7: 49,
        8: None,
    }
    assert ended[8].error == "the worker process ended with status 7"
    assert attempts_in(tmp_path, 8) == 2
    time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() and os.getpid() != pid for pid in pids)
