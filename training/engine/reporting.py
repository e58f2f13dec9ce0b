"""Reports of a run: progress bar, log.jsonl, TensorBoard, and a table at the end."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from smart_caption_ros.files import write_text_atomically
from training.configs.schema import ExperimentConfig
from training.engine.dev_evaluation import DevScores
from training.engine.progress import SELECTION, Plan, Progress
from training.engine.results import StepResult
from training.engine.run_folder import LOG

_SCORE_COLUMNS = {"dev BLEU-4": "bleu_4", "dev CIDEr": "cider"}
"""Columns of the table at the end of a run: title -> key of an epoch's log entry."""


class RunReport:
    """Reports a run on the terminal, in log.jsonl and in TensorBoard; used by the first process; to be closed."""

    def __init__(self, folder: Path, plan: Plan, progress: Progress) -> None:
        """``progress``: position of the run; the trainer updates it."""
        self._folder, self._plan, self._progress = folder, plan, progress
        bar = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} steps [{elapsed}, ETA {remaining}{postfix}]"
        self._bar = tqdm(total=plan.total, initial=plan.done(progress), unit="step", mininterval=1.0, bar_format=bar)
        # A resumed run repeats the steps after the checkpoint: what was reported of them is removed.
        _truncate(folder / LOG, len(progress.history))
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=progress.steps_done + 1)

    def close(self) -> None:
        """Close the progress bar and TensorBoard's file."""
        self._bar.close()
        self._writer.close()

    def begin_epoch(self) -> None:
        """Show the name of the epoch in the progress bar."""
        phase = self._plan.phases[self._progress.phase]
        self._bar.set_description(f"{phase.name} {self._progress.epoch + 1}/{phase.epochs}")

    def advance(self) -> None:
        """Move the progress bar by a step."""
        self._bar.update()

    def log(self, results: Sequence[StepResult], images_per_second: float) -> None:
        """Report the means of the last steps, of which the progress has the sums and the learning rates."""
        progress = self._progress
        scalars = {"train/loss": fmean(result.loss for result in results), "train/images_per_second": images_per_second}
        means = {"loss": progress.loss_sum / progress.step}
        rewards = [result.reward for result in results if result.reward is not None]
        if rewards and progress.reward_sum is not None:
            scalars["train/reward"] = fmean(rewards)
            means["reward"] = progress.reward_sum / progress.step
        scalars |= {f"learning_rate/{name}": rate for name, rate in progress.learning_rates.items()}
        for name in results[-1].gradient_norms:
            scalars[f"gradient_norm/{name}"] = fmean(result.gradient_norms[name] for result in results)
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, progress.steps_done)
        self._bar.set_postfix({name: f"{value:.3f}" for name, value in means.items()}, refresh=False)
        # Also moves the bar over the epochs that a phase has left out.
        self._bar.update(self._plan.done(progress) - self._bar.n)

    def epoch(self, entry: Mapping[str, Any], scores: DevScores) -> None:
        """Report an epoch: its log entry and its dev scores."""
        tqdm.write("  ".join(f"{key} {value}" for key, value in entry.items()))
        with (self._folder / LOG).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**entry, "time": time.strftime("%Y-%m-%dT%H:%M:%S")}) + "\n")
        for tag, values in (("dev", scores.whole), ("dev_subset", scores.subset)):
            for name, value in (values or {}).items():
                self._writer.add_scalar(f"{tag}/{name}", value, self._progress.steps_done)

    def flush(self) -> None:
        """Write TensorBoard's events to disk; called before every checkpoint."""
        self._writer.flush()


def _truncate(path: Path, lines: int) -> None:
    """Keep the first lines of a text file, if it exists."""
    written = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    if len(written) > lines:
        write_text_atomically(path, "".join(written[:lines]))


def summary(config: ExperimentConfig, history: Sequence[Mapping[str, Any]]) -> Table:
    """Build the table at the end of a run: a row for each phase; that of the best epoch is bold.
    ``history``: as in :class:`training.engine.progress.Progress`.
    """
    table = Table("phase", "epochs", "best epoch", *_SCORE_COLUMNS, "time", title=config.name)
    for column in table.columns[1:]:
        column.justify = "right"
    best = _best(history)
    for phase in config.phases:
        entries = [entry for entry in history if entry["phase"] == phase.name]
        top = _best(entries)
        if top is None:
            continue
        table.add_row(
            phase.name,
            f"{len(entries)}/{phase.last_epoch}",
            str(top["epoch"]),
            *(f"{top[key]:.4f}" for key in _SCORE_COLUMNS.values()),
            tqdm.format_interval(sum(entry["seconds"] for entry in entries)),
            style="bold" if top is best else "",
        )
    return table


def _best(history: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    # Scores of a subset are compared only where there are no others.
    return max(history, key=lambda entry: ("dev_subset" not in entry, entry[SELECTION]), default=None)
