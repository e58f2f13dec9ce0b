"""What the GPU did while steps were traced by torch's profiler."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of events on the GPU."""
_WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
"""Calls of the CUDA runtime in which the host waits for the GPU."""


def gpu_activity(trace: Path, seconds: float, steps: int) -> dict[str, Any]:
    """Summarise a trace.

    Args:
        trace: file of ``torch.profiler.profile.export_chrome_trace``.
        seconds: wall time of the traced steps.
        steps: number of traced steps.

    Returns:
        ``busy_share``: share of the time in which at least one kernel or copy ran; ``kernels``, ``copies``,
        ``graph_launches`` and ``host_waits`` a step.
    """
    events = [event for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if event.get("ph") == "X"]
    work = [event for event in events if event.get("cat") in _WORK]
    calls = [event["name"] for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")]
    busy = _union_us((event["ts"], event["ts"] + event["dur"]) for event in work)
    kernels = sum(event["cat"] == "kernel" for event in work)
    return {
        "busy_share": round(busy / 1e6 / seconds, 4),
        "kernels": round(kernels / steps, 1),
        "copies": round((len(work) - kernels) / steps, 1),
        "graph_launches": round(sum(name == "cudaGraphLaunch" for name in calls) / steps, 1),
        "host_waits": round(sum(name in _WAITS for name in calls) / steps, 1),
    }


def _union_us(intervals: Iterable[tuple[float, float]]) -> float:
    """Measure the union of intervals, microseconds."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
