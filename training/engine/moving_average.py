"""An exponential moving average of the weights: what a run of small steps agrees on.

With a constant learning rate the weights wander about a good place; their average lies nearer to it than any one of
them (Polyak & Juditsky, 1992). On a small data set that is worth about as much as an ensemble, and costs nothing on
the robot.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average of a module's state, updated after every step of its optimizer."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        """
        Args:
            decay: what a step keeps of the average, in [0, 1); the average looks back about ``1 / (1 - decay)``
                steps. It begins as the module's present state.
        """
        self._module, self._decay = module, decay
        self.tensors: dict[str, Tensor] = {name: t.detach().clone() for name, t in module.state_dict().items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with an average that was kept."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @torch.no_grad()
    def update(self) -> None:
        """Take in the module's present state."""
        for name, tensor in self._module.state_dict().items():
            if tensor.is_floating_point():
                self.tensors[name].lerp_(tensor, 1 - self._decay)
            else:
                self.tensors[name].copy_(tensor)

    def settle(self) -> None:
        """The module takes the average for good."""
        self._module.load_state_dict(self.tensors)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The module holds the average, and its own state again afterwards."""
        own = {name: tensor.detach().clone() for name, tensor in self._module.state_dict().items()}
        self.settle()
        try:
            yield
        finally:
            self._module.load_state_dict(own)
