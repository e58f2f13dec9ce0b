"""Data, model and loss of a captioner's training, as the training loop uses them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from training.checkpoint import with_prefix
from training.configs.schema import ExperimentConfig
from training.data.loading import shuffle
from training.data.visual_inputs import HostBatch
from training.engine.buffers import declared_buffers, synchronised_buffers
from training.engine.dev_evaluation import DevEvaluation, DevScores
from training.engine.distributed import Processes
from training.engine.setup import set_up_task
from training.evaluation.similar_images import find_similar_photographs
from training.models.captioner import HookContext
from training.models.eight_bits import set_eight_bits
from training.models.layers import drop_patches
from training.objectives import OBJECTIVES
from training.objectives.objective import BatchLoss, Objective


class TaskBatch(NamedTuple):
    """Inputs of the loss."""

    visual: HostBatch
    targets: Any
    """Captions in the form that the objective takes, :meth:`Objective.targets`."""


class TrainedModule(NamedTuple):
    """A module whose parameters an optimizer updates in a phase."""

    module: nn.Module
    learning_rate: float
    """Peak learning rate."""
    layer_decay: float = 1.0
    """Its factor from one layer to the layer before it."""


class CaptionTask:
    """Trains a captioner and, in phases that say so, its backbone.

    Images are indices in the training split; in a phase with ``pairs``, indices of its captions.

    :meth:`begin_phase` sets the phase that the methods after it belong to. Methods that read images raise
    :class:`DataError` for one that cannot be read.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        data: Path,
        cache: Path,
        processes: Processes,
        left_out: Collection[str] = (),
    ) -> None:
        """``left_out``: image ids that cannot be used.

        Raises:
            ConfigError: the experiment does not fit its data.
            DataError, BackboneError, CheckpointError: data or first weights are missing or malformed.
        """
        self.config, self._cache, self._processes = config, cache, processes
        setup = set_up_task(config, data, cache, left_out)
        self.images, self.captions, self._sources = setup.images, setup.captions, setup.sources
        self.inputs, self.trained = setup.inputs, setup.trained
        if processes.is_first:
            print(setup.facts, flush=True)
        if processes.is_first and (vectors := setup.trained.record.get("word_vectors")):
            learnt = vectors["learnt"]
            print(
                f"word vectors: {vectors['words'] - len(learnt)} of {vectors['words']} words have one in "
                f"{vectors['file']}; {len(learnt)} are learnt: {', '.join(learnt[:8])}{' ...' if learnt[8:] else ''}",
                flush=True,
            )
        self._dev = DevEvaluation(setup.images["dev"], setup.references, config.evaluation, config.seed, processes)
        self._phase = config.phases[0]
        self.objective: Objective
        """Loss of the phase."""
        self._image_of: np.ndarray

    @property
    def pairs(self) -> int:
        """Number of pairs of a training image and one of its captions."""
        return sum(map(len, self.captions.words))

    def prepare(self) -> None:
        """Move the modules to the device, compile them if the experiment says so, and compute what all phases share.

        Called in the first process before the others, with the first weights of the run.
        """
        captioner, backbone = self.trained.captioner, self.trained.backbone
        captioner.to(self._processes.device)
        if backbone is not None:
            backbone.to(self._processes.device)
        if self.config.compile:
            # Teacher forcing and the search call these methods, and share what is compiled.
            for method in ("encode", "decode", "decode_tree"):
                setattr(captioner, method, torch.compile(getattr(captioner, method)))
            if backbone is not None:
                backbone.compile()
        # With the weights that the run starts from, whether it is resumed or not.
        if any(phase.cider_btw_reward for phase in self.config.phases):
            similar = find_similar_photographs(self._cache, self.inputs, self.images["train"], self._sources)
            self.captions = replace(self.captions, similar=similar)

    def modules_to_train(self, phase: int) -> dict[str, TrainedModule]:
        """Return the modules that learn in a phase, by name."""
        config = self.config.phases[phase]
        modules = {"captioner": TrainedModule(self.trained.captioner, config.learning_rate)}
        if config.trains_backbone and self.trained.backbone is not None:
            modules["backbone"] = TrainedModule(
                self.trained.backbone.trainable, config.backbone_learning_rate, config.backbone_layer_decay
            )
        return modules

    def begin_phase(self, phase: int) -> None:
        """Prepare for the batches of a phase; the modules already have its first weights."""
        self._phase = self.config.phases[phase]
        set_eight_bits(self.trained.captioner, self._phase.eight_bits)
        self.inputs.begin_phase(self._phase, self._processes.precision)
        captions = self.captions
        self._image_of = np.arange(len(captions.words))
        if self._phase.pairs:
            self._image_of = np.repeat(self._image_of, [len(own) for own in captions.words])
            words = [[caption] for own in captions.words for caption in own]
            weights = None if captions.weights is None else captions.weights[self._image_of]
            captions = replace(captions, words=words, weights=weights)
        self.objective = OBJECTIVES[self._phase.objective](captions, self._phase)

    def begin_epoch(self, epoch: int, random: np.random.Generator) -> np.ndarray:
        """Begin an epoch, from its first batch or from a later one after a resume.
        ``epoch``: index of the epoch in the phase.

        Returns:
            (N,) integers, the images of the epoch, or its pairs, in the order of training.
        """
        self.trained.captioner.train()
        count = len(self._image_of)
        costs = np.zeros(count) if self._phase.pairs else self.objective.costs(np.arange(count))
        order = shuffle(costs, self._phase.images_per_batch, random)
        self.inputs.begin_epoch(epoch)
        return order

    def read(self, images: np.ndarray) -> TaskBatch:
        """Read the inputs of a loss on the CPU; called in other threads."""
        visual = self.inputs.training_batch(self._image_of[images])
        return TaskBatch(visual, self.objective.targets(images))

    def loss(self, inputs: TaskBatch, images: np.ndarray) -> BatchLoss:
        """Compute the loss of images, in the precision of the run.
        ``inputs``: from :meth:`read`, on the device.
        """
        visual = drop_patches(self.inputs.visual(inputs.visual), self._phase.patch_dropout)
        return self.objective(self.trained.captioner, visual, images, inputs.targets)

    def on_step(self, context: HookContext) -> None:
        """Run the hooks before a step."""
        self.trained.captioner.on_step(context)
        self.objective.on_step(context)
        self._synchronise_buffers()

    def _synchronise_buffers(self) -> None:
        self._processes.broadcast_tensors(synchronised_buffers(self.trained.captioner).values())

    def changing_buffers(self) -> dict[str, Tensor]:
        """Return the buffers that hooks or the loss may change, by their names in a checkpoint."""
        return with_prefix("captioner", declared_buffers(self.trained.captioner))

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        """Write the trained captioner.
        ``epoch``: log entry of the last trained epoch.
        """
        self.trained.record = {**self.trained.record, "dev": dict(epoch)}
        self.trained.save(path)

    def evaluate(self, epochs_left: int) -> DevScores:
        """Score the dev split, or its subset, with the beam size of the robot; equal in every process.
        ``epochs_left``: number of epochs of the phase after this one; with 0 the whole split is scored.
        """
        self.inputs.flush()
        self.trained.captioner.eval()
        self._synchronise_buffers()  # the loss, too, may change buffers
        scores = self._dev.score(self.trained, self.inputs, epochs_left=epochs_left)
        self.inputs.flush()
        return scores
