"""Interface between the training loop and a task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from torch import Tensor, nn

from training.configs.schema import TrainingConfig
from training.engine.dev_scores import DevScores
from training.engine.distributed import Processes
from training.models.captioner import HookContext
from training.objectives.objective import BatchLoss


class Learning(NamedTuple):
    """A module that learns in a phase."""

    module: nn.Module
    learning_rate: float
    """Peak learning rate."""


class Task(Protocol):
    """Data, model and loss of a run. Images are indices in the training split.

    :meth:`begin_phase` sets the phase that the methods after it belong to.
    """

    Config: ClassVar[type[TrainingConfig]]
    """Schema of an experiment file with this task."""
    result_file: ClassVar[str]
    """Name of the file that :meth:`save` writes in the run's folder."""
    selection: ClassVar[str | None]
    """Score of :meth:`evaluate` by which the best epoch is selected; None: the last epoch."""
    score_columns: ClassVar[Mapping[str, str]]
    """Columns of the table at the end of a run: title -> key of an epoch's log entry."""

    @property
    def max_loss(self) -> float:
        """Largest absolute value of a loss that does not count as exploded."""
        ...

    def __init__(self, config: Any, data: Path, cache: Path, processes: Processes) -> None:
        """
        Args:
            config: the experiment, a ``Config``.
            data: folder of the data sets and released weights.
            cache: folder for computed features, shared between runs.
            processes: processes of the run.

        Raises:
            ConfigError: the experiment does not fit its data.
            DataError, BackboneError, CheckpointError: the data or the first weights are missing or malformed.
        """
        ...

    def prepare(self) -> None:
        """Move the modules to the device, compile them if the experiment says so, and compute what all phases share.

        Called in the first process before the others, with the first weights of the run.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def epoch_size(self, phase: int, random: np.random.Generator) -> int:
        """Return the number of images in an epoch of a phase.

        Args:
            phase: index of the phase.
            random: generator of the epoch, as for :meth:`begin_epoch`.
        """
        ...

    def learning(self, phase: int) -> dict[str, Learning]:
        """Return the modules that learn in a phase, by name."""
        ...

    def begin_phase(self, phase: int) -> None:
        """Prepare for the batches of a phase; the modules already have its first weights.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def end_phase(self) -> None:
        """Remove files that belong to the phase that ends."""
        ...

    def begin_epoch(self, epoch: int, random: np.random.Generator) -> np.ndarray:
        """Begin an epoch, from its first batch or from a later one after a resume.

        Args:
            epoch: index of the epoch in the phase.
            random: generator of the epoch.

        Returns:
            (N,) integers, the images of the epoch in the order of training.
        """
        ...

    def loss_weights(self, images: np.ndarray) -> np.ndarray:
        """Return the number of terms of each image in the mean that the loss is: its words, or 1; (B,).

        The gradient of a batch is the mean of those of its parts, weighted by the sums of these numbers.
        """
        ...

    def costs(self, images: np.ndarray) -> np.ndarray:
        """Estimate the work of a step for each image, in any unit, to divide a batch evenly among processes; (B,)."""
        ...

    def read(self, images: np.ndarray, random: np.random.Generator) -> Any:
        """Read the inputs of a loss; called in other threads.

        Args:
            images: (B,) integers.
            random: generator of the batch. The numbers drawn for an image do not depend on the other images.

        Returns:
            Any tree of tensors on the CPU.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def loss(self, inputs: Any, images: np.ndarray) -> BatchLoss:
        """Compute the loss of images, in the precision of the run.

        Args:
            inputs: from :meth:`read`, on the device.
            images: (B,) integers.
        """
        ...

    def on_epoch(self, context: HookContext) -> None:
        """Run the hooks before the first step of an epoch; not called when an epoch is resumed after that step."""
        ...

    def on_step(self, context: HookContext) -> None:
        """Run the hooks before a step."""
        ...

    def changing_buffers(self) -> dict[str, Tensor]:
        """Return the buffers that hooks or the loss may change, by their names in :meth:`tensors`."""
        ...

    def evaluate(self, epochs_left: int) -> DevScores:
        """Score the model on the dev split; the scores are the same in every process.

        Args:
            epochs_left: number of epochs of the phase after this one; with 0 the whole split is scored.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights, for a checkpoint."""
        ...

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the weights of :meth:`tensors`; other names are ignored."""
        ...

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        """Write the trained model.

        Args:
            path: file to write.
            epoch: log entry of the last trained epoch.
        """
        ...
