"""Decoding on a GPU: the published style, a CUDA graph in torch, ONNX Runtime, and the limit of memory bandwidth.

Not run yet: no GPU was available when it was written.
"""

import copy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.torch_decoders import PublishedStyle, ReorderedCache, search_to_the_end
from smart_caption_ros.engines import EngineReport, available_engines, create_engine
from training.models.captioner import Captioner, Visual
from training.models.smart import Smart


def measure_gpu(
    model: Smart, visual: Visual, beam_size: int, max_words: int, graph: Path, rounds: int
) -> dict[str, Any]:
    """Measure milliseconds a caption of one image, also as multiples of reading the decoder's weights once a word.

    Args:
        visual: of one image, with a mask, on the CPU.
        graph: the static form for ONNX Runtime.
    """
    card = torch.device("cuda")
    with torch.inference_mode():
        smart = copy.deepcopy(model).to(card)
        on_card = Visual(visual.tokens.to(card), None if visual.mask is None else visual.mask.to(card))

    def searching(captioner: Captioner) -> Callable[[], object]:
        return lambda: search_to_the_end(captioner, on_card, beam_size, max_words)

    variants: dict[str, Callable[[], object]] = {
        "published_style": searching(PublishedStyle(smart)),
        "torch_kv_cache": searching(ReorderedCache(smart)),
        "torch_cuda_graph": captured(searching(ReorderedCache(smart))),
    }
    reports: dict[str, EngineReport] = {report.name: report for report in available_engines()}
    if reports["onnxruntime-cuda"].available:
        loaded = create_engine("onnxruntime-cuda").load(graph)
        assert visual.mask is not None
        inputs = {"tokens": visual.tokens.numpy(), "token_mask": visual.mask.numpy()}
        variants["onnxruntime_cuda"] = lambda: loaded.run(inputs)
    taken = {name: _wall_ms(run, rounds) for name, run in variants.items()}
    decoder = [p for name, p in smart.named_parameters() if name.startswith(("decoder", "word_projection"))]
    floor_ms = 1e3 * max_words * sum(p.numel() * p.element_size() for p in decoder) / _bytes_per_second(card)
    return {
        "card": torch.cuda.get_device_name(card),
        "wall_ms_median": taken,
        "memory_floor_ms": round(floor_ms, 4),
        "times_the_floor": {name: round(value / floor_ms, 2) for name, value in taken.items()},
        "not_run": {name: report.detail for name, report in reports.items() if not report.available},
    }


def captured(run: Callable[[], object]) -> Callable[[], object]:
    """Capture the work of ``run`` as a CUDA graph; a replay overwrites the results of the one before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):  # allocations and the libraries' choice of kernels, which a capture may not contain
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
    """Measure the bandwidth of the card's memory: a copy of 1 GiB reads and writes it."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=card)
    target = torch.empty_like(source)
    return 2 * source.numel() / (_wall_ms(lambda: target.copy_(source), 10) / 1e3)
