"""What a run tells while it goes on and when it is over: a progress bar, log.jsonl, TensorBoard, a table."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.table import Table
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from training.configs.schema import ExperimentConfig
from training.engine.progress import Plan, Progress
from training.engine.step import Figures


class _RunBar(tqdm):
    """A bar over the steps of the whole run that says when the run ends."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan, self._progress = plan, progress
        super().__init__(
            total=plan.total,
            initial=plan.done(progress),
            unit="step",
            mininterval=1.0,
            bar_format="{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} steps [{elapsed}, ETA {eta}{postfix}]",
        )

    @property
    def format_dict(self) -> dict[str, Any]:
        seconds = self._plan.remaining_seconds(self._progress)
        return {**super().format_dict, "eta": "?" if seconds is None else self.format_interval(seconds)}


class RunReport:
    """Of the process that talks to the user; in a ``with`` statement."""

    def __init__(self, folder: Path, plan: Plan, progress: Progress) -> None:
        """
        Args:
            folder: of the run.
            progress: where the run stands, now and whenever something is reported.
        """
        self._folder, self._plan, self._progress = folder, plan, progress
        self._bar = _RunBar(plan, progress)
        # Steps after the checkpoint are done again: what a killed run wrote of them does not count.
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=progress.steps_done + 1)

    def __enter__(self) -> "RunReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.close()
        self._writer.close()

    def step(self, figures: Figures, rates: Mapping[str, float], speed: float) -> None:
        """After a step.

        Args:
            rates: learning rates by module.
            speed: images a second.
        """
        progress = self._progress
        scalars = {"train/loss": figures.loss, "train/images_per_second": speed}
        means = {"loss": progress.loss_sum / progress.step}
        if figures.reward is not None and progress.reward_sum is not None:
            scalars["train/reward"] = figures.reward
            means["reward"] = progress.reward_sum / progress.step
        scalars |= {f"learning_rate/{name}": rate for name, rate in rates.items()}
        scalars |= {f"gradient_norm/{name}": norm for name, norm in figures.gradient_norms.items()}
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, progress.steps_done)
        phase = self._plan.phases[progress.phase]
        self._bar.set_description(f"{phase.name} {progress.epoch + 1}/{phase.epochs}", refresh=False)
        self._bar.set_postfix({name: f"{value:.3f}" for name, value in means.items()}, refresh=False)
        self._bar.update(self._plan.done(progress) - self._bar.n)

    def epoch(self, entry: Mapping[str, Any], scores: Mapping[str, float]) -> None:
        """After an epoch: its entry of log.jsonl, and the dev scores in it."""
        tqdm.write("  ".join(f"{key} {value}" for key, value in entry.items()))
        with (self._folder / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**entry, "time": time.strftime("%Y-%m-%dT%H:%M:%S")}) + "\n")
        for name, value in scores.items():
            self._writer.add_scalar(f"dev/{name}", value, self._progress.steps_done)

    def flush(self) -> None:
        """Put on disk what was reported, as a checkpoint is about to be written that counts on it."""
        self._writer.flush()


def summary(config: ExperimentConfig, history: Sequence[Mapping[str, Any]]) -> Table:
    """One table of a whole run: a row a phase, the one that the best model is from in bold.

    Args:
        history: of :class:`training.engine.progress.Progress`.
    """
    table = Table("phase", "epochs", "best epoch", "dev BLEU-4", "dev CIDEr", "time", title=config.name)
    for column in table.columns[1:]:
        column.justify = "right"
    chosen = max(history, key=lambda entry: entry["cider"], default=None)
    for phase in config.phases:
        entries = [entry for entry in history if entry["phase"] == phase.name]
        if not entries:
            continue
        top = max(entries, key=lambda entry: entry["cider"])
        # Runs that began before times were kept have none.
        seconds = sum(entry.get("seconds", 0) for entry in entries)
        table.add_row(
            phase.name,
            f"{len(entries)}/{phase.epochs}",
            str(top["epoch"]),
            f"{top['bleu_4']:.4f}",
            f"{top['cider']:.4f}",
            tqdm.format_interval(seconds) if seconds else "",
            style="bold" if top is chosen else "",
        )
    return table
