"""An exponential moving average of the weights (Polyak & Juditsky, 1992).

With a constant learning rate the weights vary around an optimum; their average is nearer to it than any one of them,
and costs nothing on the robot.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from training.engine.buffers import load_released_tensors, released_tensors


class WeightAverage:
    """The average of a module's weights, updated after every step of its optimizer.

    Buffers that are released have the latest value.
    """

    def __init__(self, module: nn.Module, decay: float, updates: int = 0) -> None:
        """
        Args:
            module: its present state is the initial average.
            decay: share of the average that a step keeps, in [0, 1); the average covers about ``1 / (1 - decay)``
                steps. It is lower in the first steps, ``(1 + n) / (10 + n)`` after n updates, so that a short run is
                not left with the weights that it began with.
            updates: number of updates before.
        """
        self._module, self._decay, self._updates = module, decay, updates
        self._average = copy.deepcopy(module)
        self._parameters = [*self._average.parameters()], [*module.parameters()]
        released = released_tensors(self._average)
        self._buffers = [name for name, _ in self._average.named_buffers() if name in released]

    def tensors(self) -> dict[str, Tensor]:
        """Return the average of all tensors that the file of a trained module has."""
        return released_tensors(self._average)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue with an average that :meth:`tensors` returned."""
        load_released_tensors(self._average, tensors)

    @torch.no_grad()
    def update(self) -> None:
        """Include the module's present state in the average."""
        decay = min(self._decay, (1 + self._updates) / (10 + self._updates))
        get_ema_multi_avg_fn(decay)(*self._parameters, None)
        self._updates += 1
        for name in self._buffers:  # by name, because a hook may have assigned another tensor
            self._average.get_buffer(name).copy_(self._module.get_buffer(name))

    def copy_to_module(self) -> None:
        """Replace the module's state by the average."""
        load_released_tensors(self._module, released_tensors(self._average))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Set the module to the average inside the ``with`` block, and restore its state afterwards."""
        own = {name: tensor.detach().clone() for name, tensor in released_tensors(self._module).items()}
        self.copy_to_module()
        try:
            yield
        finally:
            load_released_tensors(self._module, own)
