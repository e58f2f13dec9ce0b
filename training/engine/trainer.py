"""The training loop: phases of epochs, checkpoints that survive a kill, selection on the dev split."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table
from torch import Tensor, nn
from tqdm import tqdm

from smart_caption_ros.files import write_text_atomically
from training.checkpoint import (
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
    under_prefix,
    with_prefix,
)
from training.configs.schema import ExperimentConfig, PhaseConfig, parse_config, what_is_learnt
from training.data.coco import read_captions
from training.data.datasets import open_dataset
from training.data.loading import load_ahead, loading_threads, longest_captions, shuffle
from training.data.tokenizer import RULES, build_vocabulary
from training.data.visual_batches import VisualBatch
from training.data.visual_inputs import open_visual_inputs
from training.engine.distributed import Engine, check_compiler, choose_device
from training.engine.moving_average import WeightAverage
from training.engine.progress import Plan, Progress
from training.engine.reporting import RunReport, summary
from training.engine.schedules import SCHEDULES
from training.engine.step import Figures, GradientStep, Share
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import ConfigError, TrainingError
from training.evaluation.metrics.coco import score_captions
from training.models import FAMILIES
from training.objectives import OBJECTIVES
from training.objectives.objective import TrainingCaptions
from training.paths import CHECKOUT


class Trainer:
    """One run of one experiment in one folder; calling :meth:`run` again goes on where it was stopped."""

    def __init__(
        self, config: ExperimentConfig, data: Path, folder: Path, cache: Path, engine: Engine | None = None
    ) -> None:
        """
        Args:
            config: the experiment.
            data: folder with ``flickr8k/`` and ``backbones/``.
            folder: of the run: ``checkpoint.safetensors``, ``best.safetensors``, ``log.jsonl``.
            cache: folder for grid features, shared between runs.
            engine: None is this process alone, on the device that there is.

        Raises:
            ConfigError: the folder holds another experiment, or the experiment does not fit the processes.
            DataError, BackboneError: the data is missing or malformed.
        """
        self.config, self.folder = config, folder
        self.engine = engine or Engine(choose_device("auto"), config.precision)
        self.engine.from_first(self._claim_folder)
        with self.engine.together():
            self._prepare(data, cache)
        self.progress = Progress()
        self._averages: dict[str, WeightAverage] = {}
        self._report: RunReport | None = None
        self._saved = self._counted = time.monotonic()

    def _prepare(self, data: Path, cache: Path) -> None:
        """What the run is made of, and the model that it begins with."""
        config, processes = self.config, self.engine.processes
        for phase in config.phases:
            if phase.images_per_batch < phase.accumulate * processes:
                raise ConfigError(
                    f"phase {phase.name}: images_per_batch is {phase.images_per_batch}, too few for {processes} "
                    f"process(es) that compute them in {phase.accumulate} part(s) each (accumulate)"
                )
        if config.compile:
            check_compiler(self.engine.device)
        torch.manual_seed(config.seed)
        dataset = open_dataset(config.data, data)
        self.images = {split: dataset.split(split) for split in ("train", "dev")}
        rule = RULES[config.data.vocabulary]
        words = {
            image: [rule.words(caption) for caption in dataset.captions[image]]
            for images in self.images.values()
            for image in images
        }
        self.references = {image: [" ".join(w) for w in words[image]] for image in self.images["dev"]}
        train_words = [words[image] for image in self.images["train"]]
        before = TrainedCaptioner.load(CHECKOUT / config.start_from) if config.start_from else None
        if before is not None:
            vocabulary = before.vocabulary
        else:
            least = config.data.minimum_count or rule.minimum_count
            vocabulary = build_vocabulary(chain.from_iterable(train_words), least)
        text = read_captions(data / config.data.text).captions.values() if config.data.text else ()
        text_words = [[rule.words(caption) for caption in group] for group in text]
        self.captions = TrainingCaptions(train_words, vocabulary, config.data.max_words, text_words)
        self.inputs = open_visual_inputs(config, data, dataset, self.images, cache)
        family = FAMILIES[config.family]
        try:
            model = family.Config(vocabulary_size=len(vocabulary), token_width=self.inputs.token_width, **config.model)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"model: {error}") from None
        record = {"name": config.name, **self.inputs.facts, "experiment": asdict(config)}
        captioner = family(model)
        self.trained = TrainedCaptioner(config.family, captioner, self.inputs.backbone, vocabulary, record)
        if before is not None:
            self._start_from(before)
        for module in (captioner, self.trained.backbone):
            if module is not None:
                module.to(self.engine.device)
                if config.compile:
                    module.compile()
        self._places = [_of_sources(self.images["train"], phase) for phase in config.phases]
        self.plan = Plan(config.phases, [len(places) for places in self._places])

    def _start_from(self, before: TrainedCaptioner) -> None:
        """Take what a finished run has learned. A detector is none of it: that one is the experiment's.

        Raises:
            ConfigError: it is of another model.
        """
        path, own = self.config.start_from, self.trained
        if (before.family, before.captioner.config) != (own.family, own.captioner.config):
            raise ConfigError(f"start_from: {path} has a captioner of another family or size")
        if before.backbone_options != own.backbone_options:
            raise ConfigError(
                f"start_from: {path} has its visual tokens from something else (backbone, beside, yolox, features)"
            )
        own.captioner.load_state_dict(before.captioner.state_dict())
        if before.backbone is not None and own.backbone is not None:
            own.backbone.trainable.load_state_dict(before.backbone.trainable.state_dict())
            data = own.record["backbone_trained_on"]
            theirs = [*before.caption_provenance, *before.record["backbone_trained_on"]]
            data += [entry for entry in theirs if entry not in data]

    def _claim_folder(self) -> None:
        """The folder belongs to the experiment that was started in it first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        marker = self.folder / "experiment.json"
        if not marker.exists():
            write_text_atomically(marker, json.dumps(asdict(self.config), indent=2))
        elif not self._is_mine(marker):
            raise ConfigError(
                f"{self.folder} holds a run of another experiment; give another --run folder or remove it"
            )

    def _is_mine(self, marker: Path) -> bool:
        """Compared as experiments: a run that began before an option existed has it by default."""
        try:
            theirs = parse_config(json.loads(marker.read_text(encoding="utf-8")), str(marker))
            return what_is_learnt(theirs) == what_is_learnt(self.config)
        except (ConfigError, json.JSONDecodeError):
            return False

    # -- the loop ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Train to the end of the last phase.

        Raises:
            TrainingError: the loss or its gradient is no longer finite, or the loss has exploded.
            CheckpointError: the checkpoint of the folder cannot be read.
            DataError: an image cannot be read.
        """
        state, tensors = self._load("checkpoint.safetensors")
        self.progress = Progress(**state)
        with ExitStack() as stack:
            if self.engine.is_first:
                self._report = stack.enter_context(RunReport(self.folder, self.plan, self.progress))
            while self.progress.phase < len(self.config.phases):
                self._run_phase(tensors)
                tensors = {}

    def summary(self) -> Table:
        """The run so far, a row a phase."""
        return summary(self.config, self.progress.history)

    def _load(self, name: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Take the weights of a file of the run; its state and all its tensors.

        Both are empty if there is no such file. It is read by the first process, the others need not see it.
        """
        path = self.folder / name
        found = self.engine.from_first(lambda: load_checkpoint(path) if path.exists() else None)
        if found is None:
            return {}, {}
        tensors, state = found
        self.trained.load_tensors(tensors)
        return state, tensors

    def _run_phase(self, tensors: dict[str, Tensor]) -> None:
        """Go through a phase, or through what is left of it after the checkpoint that these tensors are of."""
        progress, captions = self.progress, self.captions
        phase = self.config.phases[progress.phase]
        self.engine.in_turn(lambda: self.inputs.begin_phase(phase))
        optimizer = self._optimizer(phase)
        if saved := under_prefix("optimizer", tensors):
            restore_optimizer(optimizer, saved)
        self._averages = self._averages_of(phase, tensors)
        objective = OBJECTIVES[phase.objective](captions, phase)
        step = GradientStep(self.engine, self._learning(phase), self.inputs, objective)
        while progress.epoch < phase.epochs and not 0 < phase.patience <= progress.stale_epochs:
            with self._telling_where(phase):
                self._train_epoch(phase, step, optimizer)
            self._finish_epoch(phase, optimizer)
        for average in self._averages.values():
            average.settle()
        self._averages = {}
        progress.phase, progress.epoch = progress.phase + 1, 0
        progress.phase_cider, progress.stale_epochs = -1.0, 0
        if progress.phase < len(self.config.phases):
            # Before the checkpoint, so that it holds what the phase starts from: the file of the best may change
            # in the phase's first epoch, and a resumed run must not start from that.
            self._prepare_phase(self.config.phases[progress.phase])
        # The next phase starts with a fresh optimizer: the checkpoint must not carry this one's.
        self._save(None)

    def _prepare_phase(self, phase: PhaseConfig) -> None:
        """The weights that a later phase starts from, if not from those that the phase before it ended with."""
        if phase.from_best:
            self._load("best.safetensors")
        if phase.fresh_captioner:
            torch.manual_seed(_seed((self.config.seed, self.progress.phase)))
            captioner = self.trained.captioner
            captioner.load_state_dict(type(captioner)(captioner.config).state_dict())

    def _averages_of(self, phase: PhaseConfig, tensors: dict[str, Tensor]) -> dict[str, WeightAverage]:
        """The averages of the modules that learn, going on with those of a checkpoint."""
        if not phase.average:
            return {}
        averages = {name: WeightAverage(module, phase.average) for name, module in self._learning(phase).items()}
        for name, average in averages.items():
            if saved := under_prefix(f"average.{name}", tensors):
                average.restore(saved)
        return averages

    def _learning(self, phase: PhaseConfig) -> dict[str, nn.Module]:
        """The modules that learn in a phase."""
        learning: dict[str, nn.Module] = {"captioner": self.trained.captioner}
        if phase.trains_backbone and self.trained.backbone is not None:
            learning["backbone"] = self.trained.backbone.trainable
        return learning

    def _optimizer(self, phase: PhaseConfig) -> torch.optim.Optimizer:
        peaks = {
            "captioner": phase.learning_rate,
            "backbone": phase.backbone_learning_rate,
        }
        groups = [
            {"name": name, "params": list(module.parameters()), "peak": peaks[name]}
            for name, module in self._learning(phase).items()
        ]
        return torch.optim.Adam(groups, lr=phase.learning_rate, betas=(0.9, 0.98), eps=1e-9)

    # -- an epoch ------------------------------------------------------------------------------------------

    def _train_epoch(self, phase: PhaseConfig, step: GradientStep, optimizer: torch.optim.Optimizer) -> None:
        progress, batch = self.progress, phase.images_per_batch
        epoch = (self.config.seed, progress.phase, progress.epoch)
        # Order, views and dropout depend on the seed and the place alone, so a resumed epoch sees what it would have
        # seen, in as many processes.
        random = np.random.default_rng(epoch)
        lengths = longest_captions(self.captions.words, self.captions.max_words - 1)
        places = self._places[progress.phase]
        order = places[shuffle(lengths[places], batch, random)]
        self.inputs.begin_epoch(random)
        self.trained.captioner.train()
        self._counted = time.monotonic()
        steps = self.plan.steps[progress.phase]
        left = range(progress.step, steps)

        def read(index: int) -> list[Share]:
            images = order[index * batch : (index + 1) * batch]
            return step.read(images, np.random.default_rng((*epoch, index)), phase.accumulate)

        width = getattr(self.trained.captioner.config, "d_model", 512)  # of the noam schedule, which is Transformers'
        with closing(load_ahead(read, left, loading_threads(self.engine.local_processes))) as batches:
            for index in left:
                started = time.monotonic()
                share = SCHEDULES[phase.schedule](progress.epoch * steps + index, phase.epochs * steps, phase, width)
                for group in optimizer.param_groups:
                    group["lr"] = group["peak"] * share
                torch.manual_seed(_seed((*epoch, index, self.engine.rank)))
                optimizer.zero_grad(set_to_none=True)
                figures = step.differentiate(batches)
                if started - self._saved > self.config.checkpoint_minutes * 60:
                    # Now that the weights have proved good; the step is done again by a run that goes on from here.
                    self._save(optimizer)
                optimizer.step()
                for average in self._averages.values():
                    average.update()
                self._count(figures)
                if self._report:
                    rates = {group["name"]: group["lr"] for group in optimizer.param_groups}
                    speed = len(order[index * batch : (index + 1) * batch]) / (time.monotonic() - started)
                    self._report.step(figures, rates, speed)
        step.verify()

    @contextmanager
    def _telling_where(self, phase: PhaseConfig) -> Iterator[None]:
        try:
            yield
        except TrainingError as error:
            raise TrainingError(
                f"{error}, at {phase.name} {self.progress.epoch + 1}/{phase.epochs}, step {self.progress.step}; the "
                "last good checkpoint is kept: lower learning_rate or raise warmup_steps"
            ) from None

    def _count(self, figures: Figures) -> None:
        progress = self.progress
        progress.step, progress.steps_done = progress.step + 1, progress.steps_done + 1
        progress.loss_sum += figures.loss
        if figures.reward is not None:
            progress.reward_sum = (progress.reward_sum or 0.0) + figures.reward
        self._count_time()

    def _count_time(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._counted
        self._counted = now

    def _finish_epoch(self, phase: PhaseConfig, optimizer: torch.optim.Optimizer) -> None:
        with ExitStack() as stack:
            for average in self._averages.values():
                stack.enter_context(average.applied())
            self._judge_epoch(phase, optimizer)
        self._save(optimizer)

    def _judge_epoch(self, phase: PhaseConfig, optimizer: torch.optim.Optimizer) -> None:
        """Score the weights, and keep them if none were better."""
        progress = self.progress
        scores = self.evaluate()
        self._count_time()
        entry = {
            "phase": phase.name, "epoch": progress.epoch + 1, "loss": round(progress.loss_sum / progress.step, 4),
            "learning_rate": optimizer.param_groups[0]["lr"], **{k: round(v, 4) for k, v in scores.items()},
        }  # fmt: skip
        if progress.reward_sum is not None:
            entry["reward"] = round(progress.reward_sum / progress.step, 4)
        entry["seconds"] = round(progress.seconds, 1)
        progress.history.append(entry)
        if self._report:
            self._report.epoch(entry, scores)
        if scores["cider"] > progress.best_cider:
            progress.best_cider = scores["cider"]
            self.trained.record = {**self.trained.record, "dev": entry}
            if self.engine.is_first:
                self.trained.save(self.folder / "best.safetensors")
        improved = scores["cider"] > progress.phase_cider
        progress.stale_epochs = 0 if improved else progress.stale_epochs + 1
        progress.phase_cider = max(progress.phase_cider, scores["cider"])
        progress.epoch, progress.step = progress.epoch + 1, 0
        progress.loss_sum, progress.reward_sum, progress.seconds = 0.0, None, 0.0

    def _save(self, optimizer: torch.optim.Optimizer | None) -> None:
        if self._report is None:
            return  # the first process does
        self._count_time()
        tensors = self.trained.tensors()
        if optimizer is not None:
            tensors.update(with_prefix("optimizer", optimizer_tensors(optimizer)))
            for name, average in self._averages.items():
                tensors.update(with_prefix(f"average.{name}", average.tensors))
        self._report.flush()
        save_checkpoint(self.folder / "checkpoint.safetensors", tensors, asdict(self.progress))
        self._saved = time.monotonic()

    # -- evaluation ----------------------------------------------------------------------------------------

    def evaluate(self) -> dict[str, float]:
        """Scores on the dev split, with the beam that the robot uses; each process captions some of its batches.

        Raises:
            DataError: an image cannot be read.
        """
        settings, names, engine = self.config.evaluation, self.images["dev"], self.engine
        self.trained.captioner.eval()
        captions: dict[str, str] = {}
        starts = range(0, len(names), settings.images_per_batch)[engine.rank :: engine.processes]

        def read(start: int) -> VisualBatch:
            return self.inputs.dev_batch(start, min(start + settings.images_per_batch, len(names)))

        with (
            engine.together(),
            torch.inference_mode(),
            engine.autocast(),
            closing(load_ahead(read, starts, loading_threads(engine.local_processes))) as batches,
        ):
            bar = tqdm(starts, desc="dev", leave=False, disable=not engine.is_first)
            for start, host_batch in zip(bar, batches, strict=True):
                batch = engine.to_device(host_batch)
                visual = self.inputs.visual(batch)
                found = self.trained.caption(visual, settings.beam_size, self.config.data.max_words)
                images = names[start : start + settings.images_per_batch]
                captions.update(zip(images, map(" ".join, self.trained.sentences(found)), strict=True))
        for others in engine.gather(captions):
            captions.update(others)
        return engine.from_first(lambda: score_captions({name: captions[name] for name in names}, self.references))


def _seed(place: tuple[int, ...]) -> int:
    """64 bits that depend on a place in the run."""
    return int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0])


def _of_sources(images: Sequence[str], phase: PhaseConfig) -> np.ndarray:
    """Places of the images that a phase learns from.

    Raises:
        ConfigError: there are none.
    """
    chosen = [not phase.sources or image.split("/", 1)[0] in phase.sources for image in images]
    if not any(chosen):
        raise ConfigError(
            f"phase {phase.name}: sources: {', '.join(phase.sources)} have no photographs here (repeat: 0?)"
        )
    return np.flatnonzero(chosen)
