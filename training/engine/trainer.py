"""The training loop: phases of epochs, checkpoints that survive a kill, selection of the best epoch."""

import sys
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from tqdm import tqdm

from training.checkpoint import (
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
    under_prefix,
    with_prefix,
)
from training.configs.schema import ExperimentConfig, PhaseConfig
from training.data.checking import unusable_pictures
from training.data.loading import load_ahead, loading_threads
from training.engine.distributed import Processes, check_compiler, choose_device
from training.engine.moving_average import WeightAverage
from training.engine.optimizers import layers_with_factors, make_optimizer, parameter_groups
from training.engine.precision import choose_precision
from training.engine.progress import Plan, Progress
from training.engine.reporting import RunReport
from training.engine.results import ResultReader, StepResult
from training.engine.run_folder import BEST, CHECKPOINT, claim_folder, epoch_file, load_of_run
from training.engine.schedules import make_scheduler
from training.engine.step import GradientStep, MicroBatch
from training.engine.task import CaptionTask, TrainedModule
from training.errors import CheckpointError, ConfigError
from training.models.captioner import HookContext

_HOOKS = 1
"""Spawn key of the hooks' random generators, which are independent of those of the data."""


class Trainer:
    """One run of one experiment in one folder; calling :meth:`run` again resumes it where it was stopped."""

    def __init__(
        self,
        config: ExperimentConfig,
        data: Path,
        folder: Path,
        cache: Path,
        processes: Processes | None = None,
        saved_epochs: Collection[tuple[str, int]] = (),
    ) -> None:
        """
        Args:
            processes: None: this process alone, on a GPU if there is one.
            saved_epochs: phase and epoch (from 1) whose weights are also written to a separate file.

        Raises:
            ConfigError: the folder belongs to another experiment, or the experiment does not fit the processes.
            DataError, BackboneError, CheckpointError: data or first weights are missing or malformed.
        """
        self.config, self.folder = config, folder
        self.processes = processes or Processes(choose_device("auto"))
        self.processes.from_first(lambda: claim_folder(folder, config))
        left_out = frozenset[str]()
        if not config.features:
            left_out, warning = self.processes.from_first(lambda: unusable_pictures(config.data, data, cache))
            if warning and self.processes.is_first:
                print(f"warning: {warning}", file=sys.stderr, flush=True)
        with self.processes.fail_in_all():
            self._check_processes()
            self.task = CaptionTask(config, data, cache, self.processes, left_out)
        self.processes.run_in_turns(self.task.prepare)
        self.plan = Plan(config.phases, len(self.task.images["train"]), self.task.pairs)
        self.progress = Progress()
        self._saved_epochs = set(saved_epochs)
        self._averages: dict[str, WeightAverage] = {}
        self._scaler = self.processes.new_scaler()
        self._report: RunReport | None = None
        self._time_of_save = self._time_of_count = self._time_of_log = time.monotonic()

    def _check_processes(self) -> None:
        for phase in self.config.phases:
            if phase.images_per_batch < phase.accumulate * self.processes.count:
                raise ConfigError(
                    f"phase {phase.name}: images_per_batch is {phase.images_per_batch}, too few for "
                    f"{self.processes.count} process(es) that compute them in {phase.accumulate} part(s) each "
                    "(accumulate)"
                )
        if self.config.compile:
            check_compiler(self.processes.device)

    def _random(self, *place: int) -> np.random.Generator:
        """Make a random generator that depends only on the seed and the place in the run.

        A resumed epoch therefore has the same order and views, in any number of processes.
        """
        return np.random.default_rng((self.config.seed, *place))

    # -- phases --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Train to the end of the last phase.

        Raises:
            TrainingError: the loss or its gradient is no longer finite, or the loss has exploded.
            CheckpointError: the checkpoint of the folder cannot be read.
            DataError: an image cannot be read.
        """
        checkpoint = self._load(CHECKPOINT)
        tensors: dict[str, Tensor] = {}
        if checkpoint is not None:
            tensors, state = checkpoint
            try:
                self.progress = Progress(**state)
            except TypeError as error:  # of another version, or no state of a run
                raise CheckpointError(
                    f"{self.folder / CHECKPOINT} is not the state of a run ({error}); remove it to start afresh"
                ) from None
        with ExitStack() as stack:
            if self.processes.is_first:
                self._report = stack.enter_context(closing(RunReport(self.folder, self.plan, self.progress)))
            self._choose_precision()
            while self.progress.phase < len(self.config.phases):
                self._run_phase(tensors)
                tensors = {}

    def _choose_precision(self) -> None:
        """Choose the precision of the run, which its checkpoints record; the first process decides for all."""
        processes, former = self.processes, self.progress.precision
        choice = processes.from_first(lambda: choose_precision(self.config, processes.device, processes.count, former))
        processes.precision = self.progress.precision = choice.precision
        if self._report and choice.message:
            tqdm.write(choice.message)

    @property
    def result(self) -> Path:
        """File of the best model."""
        return self.folder / BEST

    def _load(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load the weights of a file of the run and return its tensors and state; None if there is no such file.

        The first process reads the file; the others need not have it.
        """
        path = self.folder / name
        found = self.processes.from_first(lambda: load_of_run(path) if path.exists() else None)
        if found is not None:
            self.task.trained.load_tensors(found[0])
        return found

    def _run_phase(self, tensors: dict[str, Tensor]) -> None:
        """Train a phase, or the rest of it after a checkpoint with these tensors."""
        progress, phase = self.progress, self.config.phases[self.progress.phase]
        self.processes.run_in_turns(lambda: self.task.begin_phase(progress.phase))
        trained = self.task.modules_to_train(progress.phase)
        optimizer = _optimizer(phase, trained)
        if saved := under_prefix("optimizer", tensors):
            restore_optimizer(optimizer, saved)
        modules = {name: own.module for name, own in trained.items()}
        step = GradientStep(self.processes, self.task, modules, phase)
        if progress.scaler:
            step.scaler.load_state_dict(progress.scaler)
        self._scaler = step.scaler
        done, total = self.plan.steps_of_phase(progress)
        self._averages = _averages(modules, phase.average, tensors, done)
        if self._report and phase.average and total * (1 - phase.average) < 1:
            tqdm.write(
                f"phase {phase.name}: average {phase.average:g} covers {1 / (1 - phase.average):.0f} steps, and the "
                f"phase has {total}; a lower average follows the weights sooner"
            )
        scheduler = make_scheduler(optimizer, phase, total, done)
        while progress.epoch < phase.last_epoch and not 0 < phase.patience <= progress.stale_epochs:
            self._train_epoch(phase, step, optimizer, scheduler)
            self._finish_epoch(phase, optimizer)
        for average in self._averages.values():
            average.copy_to_module()
        self._averages = {}
        progress.begin_phase(progress.phase + 1)
        if progress.phase < len(self.config.phases) and self.config.phases[progress.phase].from_best:
            # Loaded before the checkpoint is written, so that the checkpoint has the first weights of the phase: the
            # file of the best model may change in the phase's first epoch.
            self._load(BEST)
        # The next phase starts with a new optimizer: the checkpoint must not contain this one's state.
        self._save(None)

    # -- an epoch ------------------------------------------------------------------------------------------

    def _train_epoch(
        self, phase: PhaseConfig, step: GradientStep, optimizer: torch.optim.Optimizer, scheduler: LRScheduler
    ) -> None:
        progress, batch = self.progress, phase.images_per_batch
        place = (progress.phase, progress.epoch)
        order = self.task.begin_epoch(progress.epoch, self._random(*place))
        steps = range(progress.step, self.plan.steps[progress.phase])
        results = ResultReader(self.processes, self.task.objective.max_loss, overflows=step.scaler.is_enabled())
        self._time_of_count = self._time_of_log = time.monotonic()
        if self._report:
            self._report.begin_epoch()

        def read(index: int) -> list[MicroBatch]:
            return step.read(order[index * batch : (index + 1) * batch])

        with closing(load_ahead(read, steps, loading_threads(self.processes.on_this_machine))) as batches:
            for index, parts in zip(steps, self.processes.in_all(batches), strict=True):
                # A checkpoint is written between the gradient of a step, which shows that the weights are good, and the
                # update of the weights. A resumed run repeats the step, including its hooks.
                reads = index % self.config.log_every == 0
                buffers = self._copy_of_buffers() if reads else {}
                self._run_hooks()
                results.add(step.differentiate(parts, optimizer), self._place(phase))
                if reads:
                    self._log(results.read(), len(order))
                    if time.monotonic() - self._time_of_save > self.config.checkpoint_minutes * 60:
                        self._save(optimizer, buffers)
                step.update(optimizer)
                for average in self._averages.values():
                    average.update()
                self._count(optimizer)
                scheduler.step()
        # verify() computes the last batch again, which must not change the buffers a second time.
        buffers = self._copy_of_buffers()
        results.add(step.verify(), self._place(phase))
        self._restore_buffers(buffers)
        self._log(results.read(), len(order))

    def _place(self, phase: PhaseConfig) -> str:
        """Describe the position in the run for error messages."""
        return f"{phase.name} {self.progress.epoch + 1}/{phase.epochs}, step {self.progress.step}"

    def _run_hooks(self) -> None:
        """Seed the random numbers of a step and run the hooks before it."""
        progress = self.progress
        place = (progress.phase, progress.epoch, progress.step)
        self.processes.seed(_seed((self.config.seed, *place, self.processes.rank)))
        seed = np.random.SeedSequence((self.config.seed, *place), spawn_key=(_HOOKS,))
        context = HookContext(
            phase=self.config.phases[progress.phase].name,
            epoch=progress.epoch,
            step=progress.step,
            steps_per_epoch=self.plan.steps[progress.phase],
            random=np.random.default_rng(seed),
            is_first=self.processes.is_first,
        )
        self.task.on_step(context)

    def _copy_of_buffers(self) -> dict[str, Tensor]:
        return {name: buffer.clone() for name, buffer in self.task.changing_buffers().items()}

    def _restore_buffers(self, buffers: dict[str, Tensor]) -> None:
        for name, buffer in self.task.changing_buffers().items():
            buffer.copy_(buffers[name])

    def _count(self, optimizer: torch.optim.Optimizer) -> None:
        """Count a step whose result need not be known yet."""
        progress = self.progress
        progress.step, progress.steps_done = progress.step + 1, progress.steps_done + 1
        progress.learning_rates = {group["name"]: group["lr"] for group in optimizer.param_groups}
        self._count_time()
        if self._report:
            self._report.advance()

    def _log(self, results: Sequence[StepResult], images: int) -> None:
        """Add the results of the last steps to the sums of the epoch, and report them.

        Args:
            results: of all finished steps that are not in the sums.
            images: number of images of the epoch.
        """
        progress, now = self.progress, time.monotonic()
        for result in results:
            progress.loss_sum += result.loss
            if result.reward is not None:
                progress.reward_sum = (progress.reward_sum or 0.0) + result.reward
        if self._report and results:
            batch = self.config.phases[progress.phase].images_per_batch
            trained = min(progress.step * batch, images) - (progress.step - len(results)) * batch
            self._report.log(results, trained / (now - self._time_of_log))
        self._time_of_log = now

    def _count_time(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._time_of_count
        self._time_of_count = now

    def _finish_epoch(self, phase: PhaseConfig, optimizer: torch.optim.Optimizer) -> None:
        with ExitStack() as stack:
            for average in self._averages.values():
                stack.enter_context(average.applied())
            self._score_epoch(phase)
        self._save(optimizer)

    def _score_epoch(self, phase: PhaseConfig) -> None:
        """Score the weights, and save them if they are the best."""
        progress = self.progress
        scores = self.task.evaluate(epochs_left=phase.last_epoch - progress.epoch - 1)
        if scores.whole is None and phase.patience:
            stale = progress.stale_epochs_after(scores)
            # The phase ends here, or may end without a better epoch.
            if stale >= phase.patience or stale == 0:
                scores = self.task.evaluate(epochs_left=0)
        self._count_time()
        entry = progress.epoch_entry(phase.name, scores)
        progress.history.append(entry)
        if self._report:
            self._report.epoch(entry, scores)
        better = progress.end_epoch(scores)
        if self.processes.is_first:
            if better:
                self.task.save(self.result, entry)
            if (phase.name, progress.epoch) in self._saved_epochs:
                self.task.save(self.folder / epoch_file(phase.name, progress.epoch), entry)

    def _save(self, optimizer: torch.optim.Optimizer | None, buffers: dict[str, Tensor] | None = None) -> None:
        """Write the checkpoint, in the first process.

        Args:
            optimizer: None: the checkpoint gets no state of an optimizer.
            buffers: values of buffers to save instead of the present ones.
        """
        if self._report is None:
            return
        self._count_time()
        tensors = self.task.trained.tensors()
        tensors.update({name: value for name, value in (buffers or {}).items() if name in tensors})
        if optimizer is not None:
            tensors.update(with_prefix("optimizer", optimizer_tensors(optimizer)))
            for name, average in self._averages.items():
                tensors.update(with_prefix(f"average.{name}", average.tensors()))
        self.progress.scaler = self._scaler.state_dict()
        self._report.flush()
        save_checkpoint(self.folder / CHECKPOINT, tensors, asdict(self.progress))
        self._time_of_save = time.monotonic()


def _optimizer(phase: PhaseConfig, trained: dict[str, TrainedModule]) -> torch.optim.Optimizer:
    groups = [
        group
        for name, own in trained.items()
        for parameters, factor in layers_with_factors(own.module, own.layer_decay)
        for group in parameter_groups(
            own.module,
            phase.optimizer,
            parameters,
            name=name,
            lr=factor * own.learning_rate,
            initial_lr=factor * own.learning_rate,  # read by torch's schedulers
        )
    ]
    return make_optimizer(phase.optimizer, groups)


def _averages(
    modules: dict[str, nn.Module], decay: float, tensors: dict[str, Tensor], updates: int
) -> dict[str, WeightAverage]:
    """Make the averages of modules, continued from the tensors of a checkpoint; none if the decay is 0."""
    averages = {name: WeightAverage(module, decay, updates) for name, module in modules.items()} if decay else {}
    for name, average in averages.items():
        if saved := under_prefix(f"average.{name}", tensors):
            average.restore(saved)
    return averages


def _seed(place: tuple[int, ...]) -> int:
    """Derive a 64-bit seed from a place in the run."""
    return int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0])
