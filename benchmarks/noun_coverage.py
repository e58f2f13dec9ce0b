"""How long noun coverage takes for a caption, with everything loaded.

    OMP_NUM_THREADS=1 python -m benchmarks.noun_coverage --json noun_coverage.json

Scores the annotated captions of the tests against ten classes of objects each. Prints and writes milliseconds a caption
(wall clock, and the process' own time, which other work on the machine does not lengthen) and the seconds that loading
took.
"""

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.environment import describe_environment, report
from smart_caption_ros.grounding import NounCoverage

CAPTIONS = Path(__file__).resolve().parents[1] / "tests" / "grounding" / "annotated_captions.txt"
CLASSES = [
    "person", "dog", "couch", "dining table", "cup", "wine glass", "tv", "refrigerator", "potted plant", "giraffe",
]  # fmt: skip

main = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def measure(repeats: int, pipeline: str | None) -> dict[str, object]:
    """Times of scoring every caption ``repeats`` times."""
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
        **_summary("wall_ms", wall_ms),
        **_summary("process_ms", process_ms),
        "environment": describe_environment(seed=0),
    }


def _summary(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}_p{share}": round(float(np.percentile(values, share)), 4) for share in (50, 95, 99)}


@main.command()
def command(
    output: Annotated[Path | None, typer.Option("--json", help="The JSON file to write.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often every caption is scored.")] = 3,
    pipeline: Annotated[str | None, typer.Option(help="A spaCy pipeline; the one shipped by default.")] = None,
) -> None:
    """Measure, print and write."""
    report(measure(repeats, pipeline), output)


if __name__ == "__main__":
    main()
