"""Measure one phase on several sides, in turns."""

import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training_steps.gpu_activity import gpu_activity
from benchmarks.training_steps.parts import ORDER
from benchmarks.training_steps.phases import MeasuredPhase
from benchmarks.training_steps.sides import Side

OURS = "working tree"


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    blocks: int
    """Number of times that each side trains a block of steps; the sides take turns."""
    steps: int
    """Measured steps of a block."""
    settling_steps: int
    """Steps before each block that are not measured: the first ones find batches that were read while the process
    waited, and a processor's caches that another process has filled."""
    teaching_steps: int
    """Steps of cross-entropy before self-critical training is measured."""
    parts: bool
    """Whether to measure as many blocks again by part."""
    trace: bool
    """Whether to trace one more block on the GPU."""

    @property
    def all_steps(self) -> int:
        """Steps of a run, the first one included."""
        return 1 + (self.settling_steps + self.steps) * (self.blocks * (1 + self.parts) + self.trace)


@dataclass(frozen=True)
class Entrant:
    """A side in the measurement of a phase, and the command that starts its run."""

    name: str
    side: Side
    command: str
    options: Mapping[str, Any]


def write_weights(side: Side, steps: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the weights of a captioner that all sides start with, so that they do the same work.

    Args:
        side: makes the captioner.
        steps: steps of cross-entropy that it trains; without any the weights are random.
        options: of the command ``teach``, without folder and steps.
    """
    with tempfile.TemporaryDirectory() as folder:
        losses = side.ask("teach", **options, folder=folder, steps=steps)["losses"]
    return {"by": side.name, "steps": steps, **({"last_loss": _rounded(losses[-1])} if losses else {})}


def measure_phase(phase: MeasuredPhase, entrants: Sequence[Entrant], extent: Extent, folder: Path) -> dict[str, Any]:
    """Measure the steps of a phase.

    Args:
        phase: the phase.
        entrants: the sides, first the one that the others are compared with.
        extent: number of steps.
        folder: folder for traces.

    Returns:
        JSON values.
    """
    runs = {each.name: _Run(each, extent, folder) for each in entrants}
    for run in runs.values():
        run.start()
    order = list(runs.values())
    for block in range(extent.blocks):
        # Every other round in reverse, so that a trend of the machine's speed affects all sides alike.
        for run in order if block % 2 == 0 else reversed(order):
            run.time_block()
    for block in range(extent.blocks if extent.parts else 0):
        for run in order if block % 2 == 0 else reversed(order):
            run.time_parts()
    if extent.trace:
        for run in order:
            run.trace()
    for run in order:
        run.stop()
    ours, *others = order
    config = phase.phase
    return {
        "phase": config.name,
        "objective": config.objective,
        "images_per_batch": config.images_per_batch,
        **({"beam_size": config.beam_size} if phase.is_self_critical else {}),
        "average": config.average,
        "visual_input": "photographs" if phase.on_photographs else "stored features",
        "sides": {run.name: run.result(config.images_per_batch) for run in order},
        "times_faster_than": {run.name: _ratios(run.block_seconds, ours.block_seconds) for run in others},
        "reward_times_faster_than": {
            run.name: _ratios(run.reward_seconds, ours.reward_seconds) for run in others if run.reward_seconds
        },
    }


class _Run:
    """A run of an entrant, and what was measured of it."""

    def __init__(self, entrant: Entrant, extent: Extent, folder: Path) -> None:
        self.name, self._side, self._extent = entrant.name, entrant.side, extent
        self._entrant, self._folder = entrant, folder
        self._answers: list[Mapping[str, Any]] = []
        self._losses: list[float] = []
        self._parts: list[Mapping[str, float]] = []
        self._gpu: dict[str, Any] | None = None

    def start(self) -> None:
        self._losses += self._side.ask(self._entrant.command, **self._entrant.options)["losses"]

    def stop(self) -> None:
        self._side.ask("stop")

    def time_block(self) -> None:
        self._settle()
        self._answers.append(self._steps())

    def time_parts(self) -> None:
        self._settle()
        self._parts.append(self._steps(parts=True)["parts"])

    def trace(self) -> None:
        self._settle()
        file = self._folder / "trace.json"
        answer = self._steps(trace=str(file))
        self._gpu = gpu_activity(file, sum(answer["seconds"]), self._extent.steps)
        file.unlink()

    @property
    def block_seconds(self) -> list[float]:
        """Mean seconds a step of each block."""
        return [statistics.mean(answer["seconds"]) for answer in self._answers]

    @property
    def reward_seconds(self) -> list[float]:
        """Mean seconds of the reward of each block; empty without a reward."""
        return [statistics.mean(answer["reward_seconds"]) for answer in self._answers if "reward_seconds" in answer]

    def result(self, images: int) -> dict[str, Any]:
        """Summarise the run."""
        steps = self._extent.steps * self._extent.blocks
        result: dict[str, Any] = {
            "step_ms": _spread_ms(self.block_seconds),
            "images_per_second": _spread([images / seconds for seconds in self.block_seconds]),
            "block_ms": [round(seconds * 1e3, 2) for seconds in self.block_seconds],
            "first_losses": [_rounded(loss) for loss in self._losses[:FIRST_LOSSES]],
        }
        if self.reward_seconds:
            longest = [length for answer in self._answers for length in answer["longest_caption"]]
            words = [length for answer in self._answers for length in answer["caption_words"]]
            result |= {
                "reward_ms": _spread_ms(self.reward_seconds),
                "caption_words": {"mean": round(statistics.mean(words), 2), "longest": max(longest)},
                "longest_caption_of_a_batch": round(statistics.mean(longest), 2),
            }
        if decoded := sum(answer.get("decoded_words", 0) for answer in self._answers):
            result["decoded_words_per_step"] = round(decoded / steps)
        if self._parts:
            result["parts"] = _mean_parts(self._parts, self._extent.steps)
        if self._gpu is not None:
            result["gpu"] = self._gpu
        return result

    def _settle(self) -> None:
        if self._extent.settling_steps:
            self._losses += self._side.ask("steps", count=self._extent.settling_steps)["losses"]

    def _steps(self, **options: Any) -> dict[str, Any]:
        answer = self._side.ask("steps", count=self._extent.steps, **options)
        self._losses += answer["losses"]
        return answer


FIRST_LOSSES = 5
"""Number of losses in a report: those of the first steps show that two sides do the same."""


def _mean_parts(blocks: Iterable[Mapping[str, float]], steps: int) -> dict[str, dict[str, float]]:
    """Average the parts over all blocks: milliseconds a step and share of the step."""
    sums: dict[str, list[float]] = {}
    for block in blocks:
        for part, taken in block.items():
            sums.setdefault(part, []).append(taken)
    count = max(map(len, sums.values()))
    seconds = {part: sum(sums[part]) / count / steps for part in ORDER if part in sums}
    total = sum(seconds.values())
    return {part: {"ms": round(each * 1e3, 2), "share": round(each / total, 4)} for part, each in seconds.items()}


def _ratios(theirs: Sequence[float], ours: Sequence[float]) -> dict[str, float]:
    """Compare each block with ours of the same round."""
    return _spread([them / us for them, us in zip(theirs, ours, strict=True)])


def _rounded(loss: float) -> float:
    return float(f"{loss:.5g}")


def _spread_ms(seconds: Iterable[float]) -> dict[str, float]:
    return _spread([each * 1e3 for each in seconds])


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest of the blocks."""
    return {
        "median": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }
