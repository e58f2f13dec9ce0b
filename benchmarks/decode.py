"""Measure decoding: our graphs, the published style, and a reordered cache in torch.

    OMP_NUM_THREADS=1 python -m benchmarks.decode [--json FILE] [--quick]

The model has the size of SMArT's paper (V = 10,201, 50 tokens of 2,048, d_ff = 2,048) and random weights; every variant
decodes 20 words. All variants have the same weights and the same inputs and are measured in turns. The full run takes
some minutes. On a machine with a GPU :func:`benchmarks.gpu.measure_gpu` measures the same model there.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import torch
import typer

from benchmarks.environment import describe_environment, report
from benchmarks.timing import measure
from benchmarks.torch_decoders import PublishedStyle, ReorderedCache, search_to_the_end
from export.captioner_graph import loop_form, static_form
from export.passes.int8 import layers_of, to_int8
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.engines import create_engine
from training.command_line import JsonOption, run_command
from training.decoding.beam_search import Hypotheses
from training.models.captioner import Captioner, Visual
from training.models.smart import Smart, SmartConfig

VOCABULARY_SIZE, TOKENS, TOKEN_WIDTH, BEAM_SIZE, MAX_WORDS = 10_201, 50, 2_048, 5, 20
ENGINE = "onnxruntime-cpu"


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    inputs: int
    """Number of images."""
    rounds: int
    """Number of times that each image is decoded."""
    batches: Mapping[int, int]
    """Number of rounds by batch size."""


FULL = Extent(inputs=12, rounds=3, batches={1: 5, 4: 3, 16: 2, 64: 1})
QUICK = Extent(inputs=3, rounds=2, batches={1: 2, 4: 1})


def decode(
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Take a minute instead of several: measure less.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Measure decoding: our graphs beside the published style and a reordered cache in torch.

    All variants have the same weights and inputs, at the sizes of the SMArT paper, and are measured in turns.
    """
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        result = {
            **describe_environment(seed=0),
            "mode": "quick" if quick else "full",
            "threads": threads,
            "shape": {
                "vocabulary": VOCABULARY_SIZE, "tokens": TOKENS, "token_width": TOKEN_WIDTH, "beam_size": BEAM_SIZE,
                "max_words": MAX_WORDS, "encoder_layers": 2, "decoder_layers": 2,
            },
            **measure_all(QUICK if quick else FULL, threads, Path(folder)),
        }  # fmt: skip
    report(result, json_file)


def main() -> int:
    return run_command(decode, "python -m benchmarks.decode", ())


def measure_all(extent: Extent, threads: int, folder: Path) -> dict[str, Any]:
    """Measure all sections of the report; the graphs are written into ``folder``."""
    torch.manual_seed(0)
    model = Smart(SmartConfig(VOCABULARY_SIZE, TOKEN_WIDTH)).eval()
    inputs = [random_visual(1) for _ in range(extent.inputs)]
    engine = create_engine(ENGINE, threads)

    def runner(path: Path) -> Callable[[Visual], dict[str, np.ndarray]]:
        graph = engine.load(path)
        return lambda visual: graph.run({"tokens": visual.tokens.numpy(), "token_mask": _mask(visual)})

    searches: dict[str, Callable[[Visual], Any]] = {
        "published_style": _searching(PublishedStyle(model)),
        "torch_kv_cache": _searching(ReorderedCache(model)),
        **{name: runner(path) for name, path in write_graphs(model, folder, BEAM_SIZE, MAX_WORDS).items()},
    }
    _say("variants, one image")
    variants = measure(searches, inputs, extent.rounds)
    slow = variants["published_style"]["cpu_ms_median"]
    _say("agreement")
    sections: dict[str, Any] = {
        "variants": {
            name: {**times, "times_faster": round(slow / times["cpu_ms_median"], 2)} for name, times in variants.items()
        },
        "agreement": agreement(searches, inputs),
    }
    _say("batches")
    del searches["published_style"]
    sections["batches"] = over_batches(searches, extent.batches)
    if torch.cuda.is_available():
        from benchmarks.gpu import measure_gpu

        graph = folder / "static.onnx"
        onnx.save(static_form(trace_captioner(model, Search(BEAM_SIZE)), MAX_WORDS, TOKENS), graph)
        sections["gpu"] = measure_gpu(model, inputs[0], BEAM_SIZE, MAX_WORDS, graph, rounds=20)
    return sections


def write_graphs(captioner: Captioner, folder: Path, beam_size: int, max_words: int) -> dict[str, Path]:
    """Write the Loop form in float32 and with every layer in 8 bits; both always decode ``max_words`` words.

    Returns:
        Files by variant: ``onnx_fp32`` and ``onnx_int8``.
    """
    exact = trace_captioner(captioner, Search(beam_size))
    traced = {"onnx_fp32": exact, "onnx_int8": to_int8(exact, layers_of(exact))}
    files = {}
    for name, exported in traced.items():
        graph = loop_form(exported, max_words, early_exit=False)
        files[name] = folder / f"{name}.onnx"
        onnx.save(graph, files[name])
    return files


def random_visual(batch: int) -> Visual:
    """Make random tokens of the paper's size, with boxes."""
    corners = torch.rand(batch, TOKENS, 2, 2).sort(dim=2).values
    mask = torch.ones(batch, TOKENS, dtype=torch.bool)
    return Visual(torch.randn(batch, TOKENS, TOKEN_WIDTH), mask, corners.flatten(2))


def _mask(visual: Visual) -> np.ndarray:
    assert visual.mask is not None
    return np.asarray(visual.mask.numpy())


def _searching(captioner: Captioner) -> Callable[[Visual], Hypotheses]:
    return lambda visual: search_to_the_end(captioner, visual, BEAM_SIZE, MAX_WORDS)


def agreement(searches: Mapping[str, Callable[[Visual], Any]], inputs: list[Visual]) -> dict[str, Any]:
    """Count the best captions that are equal to the published style's, and compare their log probabilities."""
    expected = [_best(searches["published_style"](visual)) for visual in inputs]
    found: dict[str, Any] = {"captions": len(inputs)}
    for name, search in searches.items():
        same, largest = 0, 0.0
        for visual, (words, log_probabilities) in zip(inputs, expected, strict=True):
            our_words, ours = _best(search(visual))
            if np.array_equal(our_words, words):
                same += 1
                largest = max(largest, float(np.abs(ours - log_probabilities).max()))
        found[name] = {"same_captions": same, "largest_log_probability_difference": float(f"{largest:.1e}")}
    return found


def _best(found: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read the words of the best beam, end token included, and their log probabilities."""
    kinds = ("words", "log_probabilities")
    words, log_probabilities = (
        found[kind] if isinstance(found, dict) else getattr(found, kind).numpy() for kind in kinds
    )
    ended = np.flatnonzero(words[0, 0] == Vocabulary.end_id)
    length = int(ended[0]) + 1 if ended.size else words.shape[2]
    return words[0, 0, :length], log_probabilities[0, 0, :length]


def over_batches(variants: Mapping[str, Callable[[Visual], object]], batches: Mapping[int, int]) -> dict[str, Any]:
    """Measure milliseconds by variant and batch size, on random tokens."""
    torch.manual_seed(0)
    taken: dict[str, Any] = {name: {} for name in variants}
    for batch, rounds in batches.items():
        for name, times in measure(variants, [random_visual(batch)], rounds).items():
            taken[name][str(batch)] = times
    return taken


def _say(section: str) -> None:
    print(f"measuring: {section}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
