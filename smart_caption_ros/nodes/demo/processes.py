"""Node processes of our own: in a group and a ROS domain of theirs, ended the way a terminal ends them."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

_HIGHEST_DOMAIN = 101  # above it, the ports of a domain run into those that Linux hands out to programs
_STOP_TIMEOUT_S = 20.0


def free_domain_id() -> int:
    """A ROS domain that nobody uses on this machine, as far as its discovery port tells."""
    candidates = list(range(1, _HIGHEST_DOMAIN + 1))
    random.shuffle(candidates)
    for domain_id in candidates:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                # Where the first participant of the domain listens for others (DDSI-RTPS 9.6.2.2).
                probe.bind(("", 7400 + 250 * domain_id + 10))
            except OSError:
                continue
            return domain_id
    raise RuntimeError("every ROS domain of this machine is in use: set ROS_DOMAIN_ID to one of them")


class NodeProcess:
    """A module run as `python -m MODULE --ros-args ...`, its output in a file."""

    def __init__(self, module: str, ros_args: Sequence[str], log: Path) -> None:
        """Starts the process in the environment of this one.

        Args:
            module: the module to run.
            ros_args: what follows `--ros-args`.
            log: file for its output.
        """
        self.module = module
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, "--ros-args", *ros_args],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches this process alone, which then ends the other one in order.
                start_new_session=True,
            )

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def stop(self) -> int:
        """Ends the process with SIGINT, after a while with SIGKILL, and returns its exit status."""
        for number in (signal.SIGINT, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            os.killpg(self._process.pid, number)
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                continue
        return self._process.wait()

    def log_tail(self, lines: int = 15) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
