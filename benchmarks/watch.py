"""Measure what `smart-caption watch` costs while captions arrive over ROS 2.

    python -m benchmarks.watch [--seconds 20] [--json FILE]

This process publishes the captions of two cameras; the command runs on a pseudo-terminal of 80x24 cells. Needs ROS 2
and the built messages.
"""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rclpy.context import Context
from smart_caption_ros.msg import BoundingBox, Caption, CaptionTiming, CaptionWord, DetectedObject
from std_msgs.msg import Header

from benchmarks.environment import describe_environment, report
from benchmarks.own_context import NodeInOwnContext
from benchmarks.process_use import cpu_s, resident_mb
from smart_caption_ros.nodes.demo.processes import environment, ros_variables
from training.command_line import JsonOption, run_command

CAMERAS = ("front", "rear")
RATES_HZ = (0.0, 5.0, 30.0)
SIZE = (80, 24)
START_TIMEOUT_S, WARM_UP_S = 60.0, 3.0
_TEXT = "a dining room with a wooden table and a chair"
_COMMAND = "from smart_caption_ros.cli import main; main()"
_READ_BYTES = 1 << 16


class NothingShownError(Exception):
    """The view did not show a caption in time."""


class CaptionPublishers(NodeInOwnContext):
    """Publishes the same caption for every camera at a fixed rate."""

    node_name = "captions"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._publishers = {name: self.node.create_publisher(Caption, f"/{name}/caption", 10) for name in CAMERAS}

    def publish(self) -> None:
        """Publish one caption of each camera."""
        stamp = self.node.get_clock().now().to_msg()
        for camera, publisher in self._publishers.items():
            box = BoundingBox(x2=64.0, y2=48.0)
            publisher.publish(
                Caption(
                    format_version=Caption.FORMAT_VERSION,
                    header=Header(stamp=stamp),
                    camera=camera,
                    text=_TEXT,
                    words=[CaptionWord(text=word, log_probability=-0.2, box=box) for word in _TEXT.split()],
                    objects=[DetectedObject(class_name="chair", class_id=1, score=0.7, box=box)] * 5,
                    timing=CaptionTiming(age_at_start_ms=20.0, total_ms=60.0),
                )
            )


def watch(
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 20.0,
    json_file: JsonOption = None,
) -> None:
    """Measure processor time, memory and bytes to the terminal of `smart-caption watch` at several rates."""
    result: dict[str, Any] = {
        **describe_environment(seed=0),
        "cameras": len(CAMERAS),
        "cells": list(SIZE),
        "seconds": seconds,
        "load_average": os.getloadavg()[0],
        "by_rate_hz": {f"{rate_hz:g}": measure(rate_hz, seconds) for rate_hz in RATES_HZ},
    }
    report(result, json_file)


def measure(rate_hz: float, seconds: float) -> dict[str, float]:
    """Run the command for a while.

    Args:
        rate_hz: captions a second of each camera.
        seconds: duration.

    Returns:
        ``cpu_percent`` of one core, ``bytes_per_second`` to the terminal, and ``resident_mb``.

    Raises:
        NothingShownError: the view showed no caption in time.
    """
    with tempfile.TemporaryDirectory(prefix="smart_caption_benchmark_") as logs, contextlib.ExitStack() as stack:
        stack.enter_context(environment(ros_variables(Path(logs))))
        captions = stack.enter_context(CaptionPublishers.opened())
        process, terminal = stack.enter_context(_watching())
        end_s = time.monotonic() + START_TIMEOUT_S
        shown = b""
        while b"table" not in shown:
            if time.monotonic() > end_s or process.poll() is not None:
                raise NothingShownError(f"the view showed no caption: {shown[-500:]!r}")
            captions.publish()
            shown += _read(terminal, 0.2)
        _run(captions, terminal, rate_hz, min(WARM_UP_S, seconds))
        before_s, started_s = cpu_s(process.pid), time.monotonic()
        received = _run(captions, terminal, rate_hz, seconds)
        used_s, elapsed_s = cpu_s(process.pid) - before_s, time.monotonic() - started_s
        return {
            "cpu_percent": round(100 * used_s / elapsed_s, 2),
            "bytes_per_second": round(received / elapsed_s),
            "resident_mb": resident_mb(process.pid)["resident"],
        }


def _run(captions: CaptionPublishers, terminal: int, rate_hz: float, seconds: float) -> int:
    """Publish and read for so long; return the number of bytes that the terminal got."""
    received, end_s = 0, time.monotonic() + seconds
    due_s = time.monotonic()
    while (now_s := time.monotonic()) < end_s:
        if rate_hz and now_s >= due_s:
            captions.publish()
            due_s += 1 / rate_hz
        received += len(_read(terminal, max(0.0, min(due_s if rate_hz else end_s, end_s) - time.monotonic())))
    return received


def _read(terminal: int, timeout_s: float) -> bytes:
    return os.read(terminal, _READ_BYTES) if select.select([terminal], [], [], timeout_s)[0] else b""


@contextlib.contextmanager
def _watching() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run the command on a pseudo-terminal; yield the process and the terminal's other side."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "watch"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(slave)
    try:
        yield process, master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def main() -> int:
    return run_command(watch, "python -m benchmarks.watch", (NothingShownError,))


if __name__ == "__main__":
    sys.exit(main())
