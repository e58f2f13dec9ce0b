"""The training loop: phases of epochs, checkpoints that survive a kill, selection on the dev split."""

import json
import math
import time
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from training.captioning import TrainedCaptioner
from training.checkpoint import (
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
    under_prefix,
    with_prefix,
)
from training.config import ConfigError, ExperimentConfig, PhaseConfig, parse_config
from training.data.datasets import open_dataset
from training.data.tokenizer import RULES, build_vocabulary
from training.metrics.coco import score_captions
from training.models import FAMILIES
from training.objectives import OBJECTIVES
from training.objectives.objective import Objective, Outcome, TrainingCaptions
from training.schedules import SCHEDULES
from training.visual_inputs import open_visual_inputs


class TrainingError(Exception):
    """Training cannot go on; the message says why and what to do."""


@dataclass
class Progress:
    """Where a run stands; JSON in the checkpoint."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    """Steps done in this epoch."""
    loss_sum: float = 0.0
    reward_sum: float | None = None
    """None where the objective has no reward."""
    best_cider: float = -1.0
    phase_cider: float = -1.0
    """Best of this phase."""
    stale_epochs: int = 0
    """Epochs of this phase since ``phase_cider``."""
    history: list[dict[str, Any]] = field(default_factory=list)


def multiplies_bf16() -> bool:
    """Whether this processor has bf16 matrix instructions, so that autocast pays."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


class Trainer:
    """One run of one experiment in one folder; calling :meth:`run` again goes on where it was stopped."""

    def __init__(self, config: ExperimentConfig, data: Path, folder: Path, cache: Path) -> None:
        """
        Args:
            config: the experiment.
            data: folder with ``flickr8k/`` and ``backbones/``.
            folder: of the run: ``checkpoint.safetensors``, ``best.safetensors``, ``log.jsonl``.
            cache: folder for grid features, shared between runs.

        Raises:
            ConfigError: the folder holds another experiment.
            DataError, BackboneError: the data is missing or malformed.
        """
        self.config, self.folder = config, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._claim_folder()
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
        vocabulary = build_vocabulary(chain.from_iterable(train_words), config.data.minimum_count or rule.minimum_count)
        self.captions = TrainingCaptions(train_words, vocabulary, config.data.max_words)
        self.inputs = open_visual_inputs(config, data, dataset, self.images, cache)
        family = FAMILIES[config.family]
        try:
            model = family.Config(
                vocabulary_size=len(vocabulary), token_width=self.inputs.token_width, padding_id=vocabulary.padding_id,
                **config.model,
            )  # fmt: skip
        except (TypeError, ValueError) as error:
            raise ConfigError(f"model: {error}") from None
        record = {"name": config.name, **self.inputs.facts, "experiment": asdict(config)}
        self.trained = TrainedCaptioner(config.family, family(model), self.inputs.backbone, vocabulary, record)
        self.autocast = config.precision == "bf16" or (config.precision == "auto" and multiplies_bf16())
        self.progress = Progress()

    def _claim_folder(self) -> None:
        """The folder belongs to the experiment that was started in it first."""
        marker = self.folder / "experiment.json"
        if not marker.exists():
            marker.write_text(json.dumps(asdict(self.config), indent=2), encoding="utf-8")
        elif not self._is_mine(marker):
            raise ConfigError(
                f"{self.folder} holds a run of another experiment; give another --run folder or remove it"
            )

    def _is_mine(self, marker: Path) -> bool:
        """Compared as experiments: a run that began before an option existed has it by default."""
        try:
            return parse_config(json.loads(marker.read_text(encoding="utf-8")), str(marker)) == self.config
        except (ConfigError, json.JSONDecodeError):
            return False

    # -- the loop ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Train to the end of the last phase.

        Raises:
            TrainingError: the loss is no longer finite.
            CheckpointError: the checkpoint of the folder cannot be read.
        """
        checkpoint = self.folder / "checkpoint.safetensors"
        tensors: dict[str, Tensor] = {}
        if checkpoint.exists():
            tensors, state = load_checkpoint(checkpoint)
            self.progress = Progress(**state)
            self.trained.load_tensors(tensors)
            torch.set_rng_state(tensors["random.torch"])
        while self.progress.phase < len(self.config.phases):
            phase = self.config.phases[self.progress.phase]
            self.inputs.begin_phase(phase)
            objective = OBJECTIVES[phase.objective](self.captions, phase)
            optimizer = self._optimizer(phase)
            if saved := under_prefix("optimizer", tensors):
                restore_optimizer(optimizer, saved)
            tensors = {}
            while self.progress.epoch < phase.epochs and not self._stopped_early(phase):
                self._train_epoch(phase, objective, optimizer)
                self._finish_epoch(phase, optimizer)
            self._finish_phase()

    def _stopped_early(self, phase: PhaseConfig) -> bool:
        return 0 < phase.patience <= self.progress.stale_epochs

    def _finish_phase(self) -> None:
        progress = self.progress
        progress.phase, progress.epoch = progress.phase + 1, 0
        progress.phase_cider, progress.stale_epochs = -1.0, 0
        if progress.phase < len(self.config.phases) and self.config.phases[progress.phase].from_best:
            # Before the checkpoint, so that it holds what the phase starts from: the file of the best may change
            # in the phase's first epoch, and a resumed run must not start from that.
            tensors, _ = load_checkpoint(self.folder / "best.safetensors")
            self.trained.load_tensors(tensors)
        # The next phase starts with a fresh optimizer: the checkpoint must not carry this one's.
        self._save(None)

    def _optimizer(self, phase: PhaseConfig) -> torch.optim.Optimizer:
        groups = [{"params": list(module.parameters()), "peak": rate} for module, rate in self._learning(phase)]
        return torch.optim.Adam(groups, lr=phase.learning_rate, betas=(0.9, 0.98), eps=1e-9)

    def _learning(self, phase: PhaseConfig) -> list[tuple[nn.Module, float]]:
        """The modules that learn in a phase, and their peak rates."""
        learning: list[tuple[nn.Module, float]] = [(self.trained.captioner, phase.learning_rate)]
        if phase.trains_backbone and self.trained.backbone is not None:
            learning.append((self.trained.backbone, phase.backbone_learning_rate))
        return learning

    def _train_epoch(self, phase: PhaseConfig, objective: Objective, optimizer: torch.optim.Optimizer) -> None:
        progress = self.progress
        steps = math.ceil(len(self.images["train"]) / phase.images_per_batch)
        # Order and views depend on the seed and the epoch alone, so a resumed epoch sees what it would have seen.
        random = np.random.default_rng((self.config.seed, progress.phase, progress.epoch))
        order = self._shuffle(phase.images_per_batch, random)
        self.inputs.begin_epoch(random)
        self.trained.captioner.train()
        modules = [module for module, _ in self._learning(phase)]
        saved = time.monotonic()
        title = f"{phase.name} {progress.epoch + 1}/{phase.epochs}"
        with tqdm(total=steps, initial=progress.step, desc=title, unit="step", mininterval=1.0) as bar:
            while progress.step < steps:
                start = progress.step * phase.images_per_batch
                chosen = order[start : start + phase.images_per_batch]
                done, total = progress.epoch * steps + progress.step, phase.epochs * steps
                share = SCHEDULES[phase.schedule](done, total, phase, self.trained.captioner.config.d_model)
                for group in optimizer.param_groups:
                    group["lr"] = group["peak"] * share
                outcome = self._outcome(objective, chosen)
                value = outcome.loss.item()
                if not math.isfinite(value):
                    raise TrainingError(
                        f"the loss is {value} at {title}, step {progress.step}; the last good checkpoint is kept: "
                        "lower learning_rate or raise warmup_steps"
                    )
                optimizer.zero_grad(set_to_none=True)
                outcome.loss.backward()
                for module in modules:
                    nn.utils.clip_grad_norm_(module.parameters(), 5.0)
                optimizer.step()
                progress.step += 1
                progress.loss_sum += value
                figures = {"loss": progress.loss_sum / progress.step}
                if outcome.reward is not None:
                    progress.reward_sum = (progress.reward_sum or 0.0) + outcome.reward
                    figures["reward"] = progress.reward_sum / progress.step
                bar.update()
                bar.set_postfix({name: f"{value:.3f}" for name, value in figures.items()}, refresh=False)
                if time.monotonic() - saved > self.config.checkpoint_minutes * 60:
                    self._save(optimizer)
                    saved = time.monotonic()

    def _shuffle(self, batch: int, random: np.random.Generator) -> np.ndarray:
        """A random order in which the images of a batch have captions of like length: less padding to compute."""
        cut = self.captions.max_words - 1
        longest = np.array([min(cut, max(map(len, captions))) for captions in self.captions.words])
        order = random.permutation(len(longest))
        pools = [order[start : start + 20 * batch] for start in range(0, len(order), 20 * batch)]
        batches = []
        for pool in pools:
            pool = pool[np.argsort(longest[pool], kind="stable")]
            batches += [pool[start : start + batch] for start in range(0, len(pool), batch)]
        # Only the last batch may be short, and it stays last, so that batch k begins at k * batch.
        last = batches.pop()
        return np.concatenate([*(batches[k] for k in random.permutation(len(batches))), last])

    def _outcome(self, objective: Objective, chosen: np.ndarray) -> Outcome:
        progress = self.progress
        place = (self.config.seed, progress.phase, progress.epoch, progress.step)
        batch = self.inputs.training_batch(chosen, np.random.default_rng(place))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            return objective(self.trained.captioner, self.inputs.tokens(batch), chosen, batch.mask)

    def _finish_epoch(self, phase: PhaseConfig, optimizer: torch.optim.Optimizer) -> None:
        progress = self.progress
        scores = self.evaluate()
        entry = {
            "phase": phase.name, "epoch": progress.epoch + 1, "loss": round(progress.loss_sum / progress.step, 4),
            "learning_rate": optimizer.param_groups[0]["lr"], **{k: round(v, 4) for k, v in scores.items()},
        }  # fmt: skip
        if progress.reward_sum is not None:
            entry["reward"] = round(progress.reward_sum / progress.step, 4)
        progress.history.append(entry)
        tqdm.write("  ".join(f"{key} {value}" for key, value in entry.items()))
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**entry, "time": time.strftime("%Y-%m-%dT%H:%M:%S")}) + "\n")
        if scores["cider"] > progress.best_cider:
            progress.best_cider = scores["cider"]
            self.trained.record = {**self.trained.record, "dev": entry}
            self.trained.save(self.folder / "best.safetensors")
        improved = scores["cider"] > progress.phase_cider
        progress.stale_epochs = 0 if improved else progress.stale_epochs + 1
        progress.phase_cider = max(progress.phase_cider, scores["cider"])
        progress.epoch, progress.step = progress.epoch + 1, 0
        progress.loss_sum, progress.reward_sum = 0.0, None
        self._save(optimizer)

    def _save(self, optimizer: torch.optim.Optimizer | None) -> None:
        tensors = {
            **self.trained.tensors(),
            "random.torch": torch.get_rng_state(),
        }
        if optimizer is not None:
            tensors.update(with_prefix("optimizer", optimizer_tensors(optimizer)))
        save_checkpoint(self.folder / "checkpoint.safetensors", tensors, asdict(self.progress))

    # -- evaluation ----------------------------------------------------------------------------------------

    def evaluate(self) -> dict[str, float]:
        """Scores on the dev split, with the beam that the robot uses."""
        settings, names = self.config.evaluation, self.images["dev"]
        self.trained.captioner.eval()
        captions: dict[str, str] = {}
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            for start in tqdm(range(0, len(names), settings.images_per_batch), desc="dev", leave=False):
                images = names[start : start + settings.images_per_batch]
                batch = self.inputs.dev_batch(start, start + len(images))
                found = self.trained.caption_tokens(
                    self.inputs.tokens(batch), settings.beam_size, self.config.data.max_words, batch.mask
                )
                captions.update(zip(images, map(" ".join, self.trained.sentences(found)), strict=True))
        return score_captions(captions, self.references)
