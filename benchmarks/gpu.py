"""The decoder on a GPU: the published style, a CUDA graph in torch, ONNX Runtime, and the memory's own limit.

Not run yet: no GPU was at hand when it was written.
"""

import copy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.torch_decoders import kv_cache, published_style
from smart_caption_ros.engines import EngineReport, available_engines, create_engine
from training.models.smart import Smart


def measure_gpu(model: Smart, tokens: Tensor, mask: Tensor, max_words: int, graph: Path, rounds: int) -> dict[str, Any]:
    """Milliseconds a caption of one image, and how far the CUDA graph is from reading the weights once a word.

    Args:
        tokens: (1, N, token_width); mask: (1, N) bool, both on the CPU.
        graph: the static form for ONNX Runtime.
    """
    card = torch.device("cuda")
    with torch.inference_mode():
        there = copy.deepcopy(model).to(card)
        tokens, mask = tokens.to(card), mask.to(card)
    variants: dict[str, Callable[[], object]] = {
        "published_style": lambda: published_style(there, tokens, mask, max_words=max_words),
        "torch_kv_cache": lambda: kv_cache(there, tokens, mask, max_words=max_words),
        "torch_cuda_graph": captured(lambda: kv_cache(there, tokens, mask, max_words=max_words)),
    }
    reports: dict[str, EngineReport] = {report.name: report for report in available_engines()}
    if reports["onnxruntime-cuda"].available:
        loaded = create_engine("onnxruntime-cuda").load(graph)
        inputs = {"tokens": tokens.cpu().numpy(), "token_mask": mask.cpu().numpy()}
        variants["onnxruntime_cuda"] = lambda: loaded.run(inputs)
    taken = {name: _wall_ms(run, rounds) for name, run in variants.items()}
    decoder = [p for name, p in there.named_parameters() if name.startswith(("decoder", "word_projection"))]
    floor_ms = 1e3 * max_words * sum(p.numel() * p.element_size() for p in decoder) / _bytes_per_second(card)
    return {
        "card": torch.cuda.get_device_name(card),
        "wall_ms_median": taken,
        "memory_floor_ms": round(floor_ms, 4),
        "times_the_floor": {name: round(value / floor_ms, 2) for name, value in taken.items()},
        "not_run": {name: report.detail for name, report in reports.items() if not report.available},
    }


def captured(run: Callable[[], object]) -> Callable[[], object]:
    """The work of ``run`` as a CUDA graph; a replay writes over the results of the one before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):  # allocations and libraries' choices, which a capture may not contain
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.inference_mode():
        found = run()

    def replay() -> object:
        graph.replay()
        return found

    return replay


def _wall_ms(run: Callable[[], object], rounds: int) -> float:
    run()
    taken = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - started) * 1e3)
    return round(statistics.median(taken), 4)


def _bytes_per_second(card: torch.device) -> float:
    """What the card's memory gives: a copy of 1 GiB reads and writes it."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=card)
    target = torch.empty_like(source)
    return 2 * source.numel() / (_wall_ms(lambda: target.copy_(source), 10) / 1e3)
