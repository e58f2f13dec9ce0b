"""What the training loop asks of a task, and all that it knows of one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from torch import Tensor, nn

from training.configs.schema import TrainingConfig
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

    The methods after :meth:`begin_phase` are those of the phase that it was last called with.
    """

    Config: ClassVar[type[TrainingConfig]]
    """What an experiment file with this task may say."""
    result_file: ClassVar[str]
    """Name of the file that :meth:`save` writes in the run's folder."""
    selection: ClassVar[str | None]
    """Score of :meth:`evaluate` by which the best epoch is chosen; None: the last epoch."""
    score_columns: ClassVar[Mapping[str, str]]
    """Columns of the table at the end: title -> key of an epoch's entry in the log."""

    @property
    def max_loss(self) -> float:
        """A loss beyond this, on either side of 0, has exploded."""
        ...

    def __init__(self, config: Any, data: Path, cache: Path, processes: Processes) -> None:
        """
        Args:
            data: folder of the data sets.
            cache: folder for computed features, shared between runs.

        Raises:
            ConfigError: the experiment does not fit its data.
            DataError, BackboneError, CheckpointError: the data or the first weights are missing or malformed.
        """
        ...

    def prepare(self) -> None:
        """Move the modules to the device, and compile them if the experiment says so."""
        ...

    def epoch_size(self, phase: int, random: np.random.Generator) -> int:
        """Number of images in an epoch of a phase.

        Args:
            phase: index of the phase.
            random: as for :meth:`begin_epoch`.
        """
        ...

    def learning(self, phase: int) -> dict[str, Learning]:
        """The modules that learn in a phase, by name."""
        ...

    def begin_phase(self, phase: int) -> None:
        """Prepare for the batches of a phase; the modules have the weights that it starts from.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def begin_epoch(self, random: np.random.Generator) -> np.ndarray:
        """Begin an epoch, from its first batch or from a later one after a resume.

        Args:
            random: generator of this epoch.

        Returns:
            (images,) integers, the images of the epoch in the order of training.
        """
        ...

    def loss_weight(self, images: np.ndarray) -> float:
        """What the loss of these images is a mean over: a number of words, or of images."""
        ...

    def read(self, images: np.ndarray, random: np.random.Generator) -> Any:
        """Read the inputs of a loss; called in another thread.

        Args:
            images: (B,) integers.
            random: generator of the batch. What is drawn for an image does not depend on the other images.

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
        """Called before the first step of every epoch; not again when an epoch is resumed later."""
        ...

    def on_step(self, context: HookContext) -> None:
        """Called before every step."""
        ...

    def changing_buffers(self) -> dict[str, Tensor]:
        """Buffers that hooks or the loss may change, by their names in :meth:`tensors`."""
        ...

    def evaluate(self) -> dict[str, float]:
        """Scores on the dev split, the same in every process.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def tensors(self) -> dict[str, Tensor]:
        """The weights, for a checkpoint."""
        ...

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what :meth:`tensors` gave; other names are ignored."""
        ...

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        """Write the trained model.

        Args:
            epoch: the log's entry of the epoch that it has learnt until.
        """
        ...
