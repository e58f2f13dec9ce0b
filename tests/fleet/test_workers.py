"""Shards in worker processes: retried, replaced and reported."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from smart_caption_ros.fleet.workers import Attempt, LocalWorkers, attempt, run_all
from tests.fleet.works import Failing, Square


class InProcess:
    capacity = 2

    def submit(self, work):
        future = Future()
        future.set_result(attempt(work))
        return future


def attempts_in(folder, number):
    return len(list(folder.glob(f"{number}-*")))


def test_a_shard_that_fails_is_tried_again_a_bounded_number_of_times(tmp_path):
    works = [Square(1), Failing(2, tmp_path, attempts=2), Failing(3, tmp_path, attempts=9)]
    ended = {work.number: result for work, result in run_all(works, InProcess(), retries=2)}
    assert ended[1] == Attempt(1)
    assert ended[2] == Attempt(4)
    assert ended[3].error == "RuntimeError: out of memory"
    assert (attempts_in(tmp_path, 2), attempts_in(tmp_path, 3)) == (3, 3)


def test_what_another_attempt_would_end_with_is_not_tried_again(tmp_path):
    ((_, result),) = run_all([Failing(4, tmp_path, attempts=9, kind="input")], InProcess(), retries=2)
    assert result.error == "the bag is empty"
    assert attempts_in(tmp_path, 4) == 1


@pytest.fixture
def two_workers():
    workers = LocalWorkers(2)
    yield workers
    workers.close()
    assert not multiprocessing.active_children()


def test_worker_processes_that_die_are_replaced(tmp_path, two_workers):
    works = [*map(Square, range(6)), Failing(7, tmp_path, kind="death"), Failing(8, tmp_path, attempts=9, kind="death")]
    ended = {work.number: result for work, result in run_all(works, two_workers, retries=1)}
    assert {number: result.value for number, result in ended.items()} == {
        **{number: number**2 for number in range(6)},
        7: 49,
        8: None,
    }
    assert ended[8].error == "the worker process was killed or crashed"
    assert attempts_in(tmp_path, 8) == 2
    assert len(multiprocessing.active_children()) <= two_workers.capacity


MAIN = """
import multiprocessing, os, signal
from smart_caption_ros.fleet.workers import LocalWorkers
from tests.fleet.works import Sleeping, Square

if __name__ == "__main__":
    workers = LocalWorkers(2)
    busy = workers.submit(Sleeping())
    workers.submit(Square(1)).result()
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_main_process_that_is_killed(tmp_path):
    (tmp_path / "main.py").write_text(MAIN)
    command = [sys.executable, str(tmp_path / "main.py")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pids = done.stdout.split()
    assert len(pids) == 2
    end_s = time.monotonic() + 20
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < end_s
        time.sleep(0.05)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
