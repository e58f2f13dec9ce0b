"""Captions with ONNX Runtime's thread pools in four settings, each in a process of its own, and a busy process beside.

Used by `thread_budget.py`. A process can make ONNX Runtime's global pool once, hence the processes.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.engines.onnxruntime import CPU, OnnxRuntimeEngine
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.measuring.benchmark import spread

POOLS = ("sleeping", "polling in a run", "always polling", "global pool")
"""``sleeping`` is the caption node's setting, ``polling in a run`` that of `Captioner.from_bundle`, ``always polling``
ONNX Runtime's default, and ``global pool`` one pool for all sessions, which always polls."""

_SPAWN = multiprocessing.get_context("spawn")


class BusyProcess:
    """A process that computes digests on one thread without pause."""

    def __enter__(self) -> BusyProcess:
        self._units = _SPAWN.Value("Q", 0)
        self._process = _SPAWN.Process(target=_compute_digests, args=(self._units,), daemon=True)
        self._process.start()
        while not self.units:
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()

    @property
    def units(self) -> int:
        """Number of digests computed since the start."""
        return int(self._units.value)

    def units_per_s(self, seconds: float) -> float:
        """Wait and return the digests per second meanwhile."""
        before, started_s = self.units, time.monotonic()
        time.sleep(seconds)
        return (self.units - before) / (time.monotonic() - started_s)


def caption_in_process(
    pools: str, bundle: Path | None, threads: int, rate_hz: float, seconds: float, busy: BusyProcess | None
) -> dict[str, Any]:
    """Caption generated frames at a camera's rate in a process of its own.

    Args:
        pools: one of :data:`POOLS`.
        bundle: folder of the bundle; None for the one that ships.
        threads: threads of each pool.
        rate_hz: captions per second, or as many as possible where that is less.
        seconds: duration.
        busy: a process that runs meanwhile.

    Returns:
        ``captions``, ``work_ms`` (median, p5, p95 of the wall time), ``cpu_ms_per_caption``, ``threads`` of the process
        and, with a busy process, its ``busy_units_per_s``.

    Raises:
        EOFError: the process failed; its traceback is on stderr.
    """
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_caption, args=(there, pools, bundle, threads, rate_hz, seconds), daemon=True)
    process.start()
    there.close()
    here.recv()  # loaded and warm
    units, started_s = busy.units if busy else 0, time.monotonic()
    found: dict[str, Any] = here.recv()
    if busy:
        found["busy_units_per_s"] = round((busy.units - units) / (time.monotonic() - started_s), 1)
    process.join()
    return found


def _compute_digests(units: Any) -> None:
    block = bytes(1 << 20)
    while True:
        hashlib.sha256(block).digest()
        units.value += 1


def _caption(
    answers: Connection, pools: str, bundle: Path | None, threads: int, rate_hz: float, seconds: float
) -> None:
    captioner = Captioner(Bundle.load(bundle), _engine(pools, threads))
    frames = golden_frames(4, 640, 480)
    for frame in frames:
        captioner.caption(frame)
    answers.send("ready")
    times_ms: list[float] = []
    cpu_s, end_s = time.process_time(), time.monotonic() + seconds
    while (started_s := time.monotonic()) < end_s:
        captioner.caption(frames[len(times_ms) % len(frames)])
        times_ms.append(1e3 * (time.monotonic() - started_s))
        time.sleep(max(0.0, started_s + 1 / rate_hz - time.monotonic()))
    answers.send(
        {
            "captions": len(times_ms),
            "work_ms": spread(times_ms),
            "cpu_ms_per_caption": round(1e3 * (time.process_time() - cpu_s) / len(times_ms), 2),
            "threads": len(list(Path("/proc/self/task").iterdir())),
        }
    )


def _engine(pools: str, threads: int) -> OnnxRuntimeEngine:
    engine = OnnxRuntimeEngine(CPU, threads, spinning=pools != "sleeping")
    if pools == "always polling":
        engine._options.add_session_config_entry("session.force_spinning_stop", "0")
    elif pools == "global pool":
        engine._onnxruntime.set_global_thread_pool_sizes(threads, 1)
        engine._options.use_per_session_threads = False
    return engine
