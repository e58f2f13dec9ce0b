"""Task of training a captioner: an objective on captions, and scores of the dev split after every epoch."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from training.checkpoint import with_prefix
from training.configs.schema import ExperimentConfig, PhaseConfig, TrainingConfig
from training.data.loading import load_ahead, loading_threads, shuffle
from training.data.visual_batches import VisualBatch
from training.engine.buffers import declared_buffers, synchronised_buffers
from training.engine.distributed import Processes
from training.engine.tasks.captioner_setup import set_up_captioner
from training.engine.tasks.task import Learning
from training.errors import ConfigError
from training.evaluation.metrics.coco import score_captions
from training.models.captioner import HookContext
from training.objectives import OBJECTIVES
from training.objectives.objective import BatchLoss, Objective


class CaptioningBatch(NamedTuple):
    """Inputs of the loss."""

    visual: VisualBatch
    targets: Any
    """What the objective needs of the captions."""


class CaptioningTask:
    """Trains a captioner and, in phases that say so, its backbone."""

    Config: ClassVar[type[TrainingConfig]] = ExperimentConfig
    result_file: ClassVar[str] = "best.safetensors"
    selection: ClassVar[str | None] = "cider"
    score_columns: ClassVar[Mapping[str, str]] = {"dev BLEU-4": "bleu_4", "dev CIDEr": "cider"}

    def __init__(self, config: ExperimentConfig, data: Path, cache: Path, processes: Processes) -> None:
        """
        Args:
            config: the experiment.
            data: folder with ``flickr8k/`` and ``backbones/``.
            cache: folder for grid features, shared between runs.
            processes: processes of the run.

        Raises:
            ConfigError: the experiment does not fit its data.
            DataError, BackboneError, CheckpointError: data or first weights are missing or malformed.
        """
        self.config, self._processes = config, processes
        setup = set_up_captioner(config, data, cache)
        self.images, self.references, self.captions = setup.images, setup.references, setup.captions
        self.inputs, self.trained = setup.inputs, setup.trained
        self._places = [_images_of_sources(self.images["train"], phase) for phase in config.phases]
        self._phase = 0
        self._objective: Objective

    @property
    def max_loss(self) -> float:
        return self._objective.max_loss

    def prepare(self) -> None:
        for module in (self.trained.captioner, self.trained.backbone):
            if module is not None:
                module.to(self._processes.device)
                if self.config.compile:
                    module.compile()

    def epoch_size(self, phase: int, random: np.random.Generator) -> int:
        return len(self._places[phase])

    def learning(self, phase: int) -> dict[str, Learning]:
        config = self.config.phases[phase]
        learning = {"captioner": Learning(self.trained.captioner, config.learning_rate)}
        if config.trains_backbone and self.trained.backbone is not None:
            learning["backbone"] = Learning(self.trained.backbone.trainable, config.backbone_learning_rate)
        return learning

    def begin_phase(self, phase: int) -> None:
        self._phase, config = phase, self.config.phases[phase]
        self.inputs.begin_phase(config)
        self._objective = OBJECTIVES[config.objective](self.captions, config)

    def begin_epoch(self, random: np.random.Generator) -> np.ndarray:
        self.trained.captioner.train()
        places = self._places[self._phase]
        order = places[shuffle(self.costs(places), self.config.phases[self._phase].images_per_batch, random)]
        self.inputs.begin_epoch(random)
        return order

    def loss_weights(self, images: np.ndarray) -> np.ndarray:
        return self._objective.weights(images)

    def costs(self, images: np.ndarray) -> np.ndarray:
        return self._objective.costs(images)

    def read(self, images: np.ndarray, random: np.random.Generator) -> CaptioningBatch:
        return CaptioningBatch(self.inputs.training_batch(images, random), self._objective.targets(images))

    def loss(self, inputs: CaptioningBatch, images: np.ndarray) -> BatchLoss:
        visual = self.inputs.visual(inputs.visual)
        return self._objective(self.trained.captioner, visual, images, inputs.targets)

    def on_epoch(self, context: HookContext) -> None:
        self.trained.captioner.on_epoch(context)
        self._synchronise_buffers()

    def on_step(self, context: HookContext) -> None:
        self.trained.captioner.on_step(context)
        self._synchronise_buffers()

    def _synchronise_buffers(self) -> None:
        self._processes.broadcast_tensors(synchronised_buffers(self.trained.captioner).values())

    def changing_buffers(self) -> dict[str, Tensor]:
        return with_prefix("captioner", declared_buffers(self.trained.captioner))

    def tensors(self) -> dict[str, Tensor]:
        return self.trained.tensors()

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self.trained.load_tensors(dict(tensors))

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        self.trained.record = {**self.trained.record, "dev": dict(epoch)}
        self.trained.save(path)

    def evaluate(self) -> dict[str, float]:
        """Score the dev split with the beam size of the robot; each process captions some of the batches.

        Raises:
            DataError: an image cannot be read.
        """
        names, processes = self.images["dev"], self._processes
        self.trained.captioner.eval()
        with processes.fail_in_all(), torch.inference_mode(), processes.autocast():
            captions = self._caption_own_batches(names)
        for others in processes.gather(captions):
            captions.update(others)
        return processes.from_first(lambda: score_captions({name: captions[name] for name in names}, self.references))

    def _caption_own_batches(self, names: Sequence[str]) -> dict[str, str]:
        settings, processes = self.config.evaluation, self._processes
        captions: dict[str, str] = {}
        starts = range(0, len(names), settings.images_per_batch)[processes.rank :: processes.count]

        def read(start: int) -> VisualBatch:
            return self.inputs.dev_batch(start, min(start + settings.images_per_batch, len(names)))

        with closing(load_ahead(read, starts, loading_threads(processes.on_this_machine))) as batches:
            bar = tqdm(starts, desc="dev", leave=False, disable=not processes.is_first)
            for start, host_batch in zip(bar, batches, strict=True):
                batch = processes.to_device(host_batch)
                visual = self.inputs.visual(batch)
                found = self.trained.caption(visual, settings.beam_size, self.config.data.max_words)
                images = names[start : start + settings.images_per_batch]
                captions.update(zip(images, map(" ".join, self.trained.sentences(found)), strict=True))
        return captions


def _images_of_sources(images: Sequence[str], phase: PhaseConfig) -> np.ndarray:
    """Return the indices of the images that a phase learns from.

    Raises:
        ConfigError: there are no such images.
    """
    chosen = [not phase.sources or image.split("/", 1)[0] in phase.sources for image in images]
    if not any(chosen):
        raise ConfigError(
            f"phase {phase.name}: sources: {', '.join(phase.sources)} have no photographs here (repeat: 0?)"
        )
    return np.flatnonzero(chosen)
