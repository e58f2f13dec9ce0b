"""Measure the speed and the memory of a bundle on this machine."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smart_caption_ros.captioning import Captioner, EngineError

PARTS = ("preprocess", "vision", "decode", "total")

# A program that captions one frame and prints its memory in kB.
_FIRST_CAPTION = """
import sys
import numpy
from smart_caption_ros.captioning import Captioner
path, engine, threads = sys.argv[1:]
captioner = Captioner.from_bundle(path, engine, int(threads) or None)
captioner.caption(numpy.full((480, 640, 3), 127, numpy.uint8))
status = dict(line.split(":", 1) for line in open("/proc/self/status")) if sys.platform == "linux" else {}
print(*(int(status.get(name, "0 kB").split()[0]) for name in ("VmRSS", "VmHWM")), flush=True)
"""


def measure(
    captioner: Captioner, frames: Sequence[np.ndarray], rounds: int, on_frame: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Caption frames one after the other, and after a warm-up measure the time per frame, by parts.

    Args:
        frames: uint8 (H, W, 3) BGR each.

    Returns:
        ``frames``, ``milliseconds`` (a :func:`spread` per part), ``frames_per_second`` and ``mean_steps``.
    """
    for frame in frames:
        captioner.caption(frame)
    parts: dict[str, list[float]] = {part: [] for part in PARTS}
    steps, cpu_ms = [], []
    started = time.perf_counter()
    for _ in range(rounds):
        for frame in frames:
            cpu = time.process_time()
            timing = captioner.caption(frame).timing
            cpu_ms.append((time.process_time() - cpu) * 1e3)
            for part in PARTS:
                parts[part].append(getattr(timing, f"{part}_s") * 1e3)
            steps.append(timing.steps)
            on_frame()
    elapsed = time.perf_counter() - started
    return {
        "frames": rounds * len(frames),
        "milliseconds": {**{part: spread(parts[part]) for part in PARTS}, "cpu": spread(cpu_ms)},
        "frames_per_second": round(rounds * len(frames) / elapsed, 2),
        "mean_steps": round(float(np.mean(steps)), 2),
    }


def measure_start(bundle: Path, engine: str, threads: int | None) -> dict[str, float]:
    """Measure the time of a new process from its start to its first caption, and its memory at that time.

    Returns:
        ``seconds``; on Linux also ``rss_mb`` and ``peak_rss_mb`` in 10^6 bytes.
    """
    # The new process imports the same package as this one, installed or not.
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", _FIRST_CAPTION, str(bundle), engine, str(threads or 0)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    elapsed = time.perf_counter() - started
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise EngineError(f"a process of its own could not caption a frame: {last}")
    resident, peak = (int(kilobytes) * 1024 / 1e6 for kilobytes in done.stdout.split()[-2:])
    memory = {"rss_mb": round(resident, 1), "peak_rss_mb": round(peak, 1)} if resident else {}
    return {"seconds": round(elapsed, 3), **memory}


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return median, 5th and 95th percentile, rounded to 3 decimals."""
    array = np.array(list(values))
    return {
        "median": round(float(np.median(array)), 3),
        **{f"p{share}": round(float(np.percentile(array, share)), 3) for share in (5, 95)},
    }


def hardware() -> dict[str, Any]:
    return {"processor": processor(), "machine": platform.machine(), "cores": os.cpu_count()}


def processor() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
