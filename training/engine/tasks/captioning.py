"""Task of training a captioner: an objective on captions, and scores of the dev split after every epoch."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from training.checkpoint import under_prefix, with_prefix
from training.configs.schema import ExperimentConfig, PhaseConfig, TrainingConfig
from training.data.loading import shuffle
from training.data.visual_batches import HostBatch
from training.engine.allocator import return_freed_memory
from training.engine.buffers import declared_buffers, load_saved_tensors, saved_tensors, synchronised_buffers
from training.engine.dev_scores import DevScores
from training.engine.distributed import Processes
from training.engine.tasks.captioner_setup import set_up_captioner
from training.engine.tasks.dev_evaluation import DevEvaluation
from training.engine.tasks.similar_photographs import compare_captions
from training.engine.tasks.task import Learning
from training.errors import ConfigError
from training.models.captioner import Captioner, HookContext
from training.models.eight_bits import set_eight_bits
from training.models.patch_dropout import drop_patches
from training.objectives import OBJECTIVES
from training.objectives.objective import BatchLoss, Objective


class CaptioningBatch(NamedTuple):
    """Inputs of the loss."""

    visual: HostBatch
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
        self.config, self._cache, self._processes = config, cache, processes
        setup = set_up_captioner(config, data, cache)
        self.images, self.captions, self._groups = setup.images, setup.captions, setup.groups
        self.inputs, self.trained = setup.inputs, setup.trained
        if processes.is_first and (vectors := setup.trained.record.get("word_vectors")):
            learnt = vectors["learnt"]
            print(
                f"word vectors: {vectors['words'] - len(learnt)} of {vectors['words']} words have one in "
                f"{vectors['file']}; {len(learnt)} are learnt: {', '.join(learnt[:8])}{' ...' if learnt[8:] else ''}",
                flush=True,
            )
        self._places = [_images_of_sources(self.images["train"], phase) for phase in config.phases]
        self._dev = DevEvaluation(setup.images["dev"], setup.references, config.evaluation, config.seed, processes)
        self._learning = [_trained_parameters(self.trained.captioner, phase) for phase in config.phases]
        self._phase = 0
        self._objective: Objective
        self._reference: Captioner | None = None
        """The captioner at the beginning of the phase, for objectives that have a reference."""
        self._saved_reference: dict[str, Tensor] = {}
        """Weights of the reference in the checkpoint from which the phase is resumed."""

    @property
    def max_loss(self) -> float:
        return self._objective.max_loss

    def prepare(self) -> None:
        for module in (self.trained.captioner, self.trained.backbone):
            if module is not None:
                module.to(self._processes.device)
                if self.config.compile:
                    module.compile()
        # With the weights that the run starts from, whether it is resumed or not.
        if any(phase.compares_images for phase in self.config.phases):
            compared = compare_captions(
                self._cache, self.inputs, self.images["train"], self._groups, self.captions.words
            )
            self.captions = replace(self.captions, distinctiveness=compared)

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
        set_eight_bits(self.trained.captioner, config.eight_bits)
        self.inputs.begin_phase(config)
        for name, parameter in self.trained.captioner.named_parameters():
            parameter.requires_grad_(name in self._learning[phase])
        objective = OBJECTIVES[config.objective]
        self._reference = self._make_reference() if objective.has_reference else None
        self._objective = objective(self.captions, config, self._reference)
        # To read captions and to index their n-grams takes several times the memory of the result.
        return_freed_memory()

    def _make_reference(self) -> Captioner:
        """Copy the captioner at the beginning of the phase, which the checkpoint has if the phase is resumed."""
        reference = copy.deepcopy(self.trained.captioner).eval().requires_grad_(False)
        if self._saved_reference:
            load_saved_tensors(reference, self._saved_reference)
        self._saved_reference = {}
        if self.config.compile:
            reference.compile()
        return reference

    def end_phase(self) -> None:
        self.inputs.end_phase()
        self._reference = None

    def begin_epoch(self, epoch: int, random: np.random.Generator) -> np.ndarray:
        self.trained.captioner.train()
        places = self._places[self._phase]
        order = places[shuffle(self.costs(places), self.config.phases[self._phase].images_per_batch, random)]
        self.inputs.begin_epoch(epoch)
        return order

    def loss_weights(self, images: np.ndarray) -> np.ndarray:
        return self._objective.weights(images)

    def costs(self, images: np.ndarray) -> np.ndarray:
        return self._objective.costs(images)

    def read(self, images: np.ndarray, random: np.random.Generator) -> CaptioningBatch:
        return CaptioningBatch(self.inputs.training_batch(images), self._objective.targets(images))

    def loss(self, inputs: CaptioningBatch, images: np.ndarray) -> BatchLoss:
        visual = drop_patches(self.inputs.visual(inputs.visual), self.config.phases[self._phase].patch_dropout)
        return self._objective(self.trained.captioner, visual, images, inputs.targets)

    def on_epoch(self, context: HookContext) -> None:
        self.trained.captioner.on_epoch(context)
        self._synchronise_buffers()

    def on_step(self, context: HookContext) -> None:
        self.trained.captioner.on_step(context)
        self._objective.on_step(context)
        self._synchronise_buffers()

    def _synchronise_buffers(self) -> None:
        self._processes.broadcast_tensors(synchronised_buffers(self.trained.captioner).values())

    def changing_buffers(self) -> dict[str, Tensor]:
        return with_prefix("captioner", declared_buffers(self.trained.captioner))

    def tensors(self) -> dict[str, Tensor]:
        tensors = self.trained.tensors()
        if self._reference is not None:
            tensors |= with_prefix("reference", saved_tensors(self._reference))
        return tensors

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self.trained.load_tensors(dict(tensors))
        self._saved_reference = under_prefix("reference", dict(tensors))

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        self.trained.record = {**self.trained.record, "dev": dict(epoch)}
        self.trained.save(path)

    def evaluate(self, epochs_left: int) -> DevScores:
        """Score the dev split, or its subset, with the beam size of the robot.

        Raises:
            DataError: an image cannot be read.
        """
        self.trained.captioner.eval()
        self._synchronise_buffers()  # the loss, too, may change buffers
        return self._dev.score(self.trained, self.inputs, self.config.data.max_words, epochs_left=epochs_left)


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


def _trained_parameters(captioner: Captioner, phase: PhaseConfig) -> set[str]:
    """Return the names of the captioner's parameters that learn in a phase.

    Raises:
        ConfigError: the captioner has no such module, or the module has no parameters.
    """
    names = [name for name, _ in captioner.named_parameters()]
    if not phase.trained_modules:
        return set(names)
    chosen = {module: _below(module, names) for module in phase.trained_modules}
    if unknown := [module for module, own in chosen.items() if not own]:
        known = dict.fromkeys(name.partition(".")[0] for name in names)
        raise ConfigError(
            f"phase {phase.name}: trained_modules: the captioner has no module {unknown[0]!r}; it has "
            f"{', '.join(known)}"
        )
    return set().union(*chosen.values())


def _below(module: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name == module or name.startswith(f"{module}.")]
