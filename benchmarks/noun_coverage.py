"""Time the noun coverage of a caption.

    OMP_NUM_THREADS=1 python -m benchmarks.noun_coverage --json noun_coverage.json

The annotated captions of the tests are scored against ten classes of objects. The result has the time per caption in
milliseconds, as wall-clock time and as CPU time of the process, and the time of loading in seconds.
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.environment import describe_environment, report
from smart_caption_ros.grounding import NounCoverage
from training.command_line import JsonOption, run_command

CAPTIONS = Path(__file__).resolve().parents[1] / "tests" / "grounding" / "annotated_captions.txt"
CLASSES = [
    "person", "dog", "couch", "dining table", "cup", "wine glass", "tv", "refrigerator", "potted plant", "giraffe",
]  # fmt: skip


def measure(repeats: int, pipeline: str | None) -> dict[str, object]:
    """Time the scoring of every caption ``repeats`` times by a spaCy pipeline, or by the one that ships if None."""
    lines = CAPTIONS.read_text(encoding="utf-8").splitlines()
    captions = [line.replace("*", "") for line in lines if not line.startswith("#")]
    started = time.perf_counter()
    coverage = NounCoverage.load(pipeline)
    load_s = time.perf_counter() - started
    for caption in captions:
        coverage.score(caption, CLASSES)
    wall_ms, process_ms = [], []
    for caption in captions * repeats:
        wall, process = time.perf_counter_ns(), time.process_time_ns()
        coverage.score(caption, CLASSES)
        wall_ms.append((time.perf_counter_ns() - wall) / 1e6)
        process_ms.append((time.process_time_ns() - process) / 1e6)
    return {
        "benchmark": "noun_coverage",
        "pipeline": coverage.finder.name,
        "word_vectors": coverage.vectors.name,
        "captions": len(captions),
        "repeats": repeats,
        "classes": len(CLASSES),
        "load_s": round(load_s, 3),
        **_percentiles("wall_ms", wall_ms),
        **_percentiles("process_ms", process_ms),
        "environment": describe_environment(seed=0),
    }


def _percentiles(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}_p{rank}": round(float(np.percentile(values, rank)), 4) for rank in (50, 95, 99)}


def noun_coverage(
    output: JsonOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of times that every caption is scored.")] = 3,
    pipeline: Annotated[str | None, typer.Option(help="spaCy pipeline (default: the one in the package).")] = None,
) -> None:
    """Time the noun coverage of a caption."""
    report(measure(repeats, pipeline), output)


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(noun_coverage, "python -m benchmarks.noun_coverage")


if __name__ == "__main__":
    sys.exit(main())
