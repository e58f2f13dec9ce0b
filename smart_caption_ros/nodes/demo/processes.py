"""Start nodes as processes in a separate ROS domain, and end them with SIGINT as a terminal does.

Used by the demo, by the tests and by `benchmarks/node.py`.
"""

import os
import random
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file

_HIGHEST_DOMAIN = 101  # the ports of higher domains overlap the ephemeral ports of Linux
_PARTICIPANTS = 20  # processes of a domain that are looked for
_STOP_TIMEOUT_S = 20.0
_chosen: deque[socket.socket] = deque(maxlen=8)  # keep other processes from choosing these domains before a node runs


def free_domain_id() -> int:
    """Return a ROS domain that no node on this machine uses, and that no process has just chosen."""
    candidates = list(range(1, _HIGHEST_DOMAIN + 1))
    random.shuffle(candidates)
    for domain_id in candidates:
        first_port = 7400 + 250 * domain_id
        choice = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            choice.bind(("", first_port + 249))  # which only the 120th participant would use
            # The unicast discovery ports of the participants (DDSI-RTPS 9.6.2.2), of whom the first may have ended.
            for participant in range(_PARTICIPANTS):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.bind(("", first_port + 10 + 2 * participant))
        except OSError:
            choice.close()
            continue
        if len(_chosen) == _chosen.maxlen:
            _chosen.popleft().close()
        _chosen.append(choice)
        return domain_id
    raise RuntimeError("all ROS domains of this machine are in use: set ROS_DOMAIN_ID to one of them")


def ros_variables(logs: Path) -> dict[str, str]:
    """Return environment variables for processes in an unused ROS domain that is limited to this machine."""
    return {
        "ROS_DOMAIN_ID": str(free_domain_id()),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(logs),
        PROFILE_VARIABLE: str(config_file(FAST_DDS_PROFILE)),
    }


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process, and restore them at the end of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class NodeProcess:
    """A process `python -m MODULE --ros-args ...` whose output goes to a file."""

    def __init__(self, module: str, ros_args: Sequence[str], log: Path) -> None:
        self.module = module
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, "--ros-args", *ros_args],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A separate session: Ctrl-C reaches only this process, which then ends the other one.
                start_new_session=True,
            )

    def __enter__(self) -> "NodeProcess":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Exit status; None while the process runs."""
        return self._process.poll()

    def stop(self) -> int:
        """End the process with SIGINT, after 20 s with SIGKILL, and return its exit status."""
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
        """Return the last lines of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
