"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection, wait

from smart_caption_ros.fleet.work import Attempt, Work, attempt

_END_TIMEOUT_S = 5.0


class LocalWorkers:
    """Processes that keep what they have loaded from shard to shard; one that dies is replaced.

    Args:
        jobs: number of processes.
    """

    def __init__(self, jobs: int) -> None:
        self.capacity = jobs
        # Not forked: a fork copies locks that threads of the engine may hold.
        self._context = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Work] = {}

    def start(self, work: Work) -> None:
        connection = self._idle.pop() if self._idle else self._new_process()
        self._busy[connection] = work
        connection.send(work)

    def finished(self) -> tuple[Work, Attempt]:
        connection = wait(list(self._busy))[0]
        assert isinstance(connection, Connection)
        work = self._busy.pop(connection)
        try:
            ended: Attempt = connection.recv()
        except (EOFError, OSError):  # the process is gone
            process = self._processes.pop(connection)
            process.join(_END_TIMEOUT_S)
            connection.close()
            return work, Attempt(error=f"the worker process ended with status {process.exitcode}", is_final=False)
        self._idle.append(connection)
        return work, ended

    def close(self) -> None:
        for connection, process in self._processes.items():
            process.terminate()
            connection.close()
        for process in self._processes.values():
            process.join(_END_TIMEOUT_S)
            if process.is_alive():
                process.kill()
        self._processes.clear()

    def _new_process(self) -> Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the main one ends the others
    while True:
        try:
            work = connection.recv()
        except EOFError:  # the main process is gone
            return
        connection.send(attempt(work))
