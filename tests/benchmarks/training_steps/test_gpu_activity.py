"""The work of a GPU is read from a trace of torch's profiler."""

import json
from pathlib import Path
from typing import Any

import torch

from benchmarks.training_steps.gpu_activity import gpu_activity


def event(category: str, name: str, start: float, duration: float) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration}


def test_kernels_that_overlap_keep_the_gpu_busy_once(tmp_path: Path) -> None:
    events = [
        event("kernel", "gemm", 100, 50),
        event("kernel", "softmax", 120, 50),  # on another stream
        event("gpu_memcpy", "Memcpy DtoH", 300, 30),
        event("cuda_runtime", "cudaLaunchKernel", 90, 5),
        event("cuda_runtime", "cudaStreamSynchronize", 95, 200),
        event("cuda_runtime", "cudaGraphLaunch", 400, 10),
        event("cpu_op", "aten::mm", 80, 30),
        {"ph": "M", "name": "process_name"},
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    assert gpu_activity(tmp_path / "trace.json", seconds=1e-3, steps=2) == {
        "busy_share": 0.1,
        "kernels": 1.0,
        "copies": 0.5,
        "graph_launches": 0.5,
        "host_waits": 0.5,
    }


def test_a_trace_of_the_profiler_can_be_read(tmp_path: Path) -> None:
    with torch.profiler.profile() as profiler:
        torch.ones(8, 8) @ torch.ones(8, 8)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    assert gpu_activity(tmp_path / "trace.json", seconds=1.0, steps=1)["kernels"] == 0
