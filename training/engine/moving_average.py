"""An exponential moving average of the weights (Polyak & Juditsky, 1992).

With a constant learning rate the weights vary around an optimum; their average is nearer to it than any one of them. On
a small data set that is worth about as much as an ensemble, and costs nothing on the robot.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from training.engine.buffers import averaged_buffers, load_saved_tensors, saved_tensors


class WeightAverage:
    """The average of a module's weights, updated after every step of its optimizer.

    Of the buffers only those are averaged whose policy says so; of the others it has the latest value.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        """
        Args:
            decay: share of the average that a step keeps, in [0, 1); the average covers about ``1 / (1 - decay)``
                steps. It begins as the module's present state.
        """
        self._module, self._decay = module, decay
        self._average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(decay))
        self._average.n_averaged.fill_(1)  # the present state counts: the first update averages, too

    def tensors(self) -> dict[str, Tensor]:
        """The average of everything that a checkpoint holds of the module."""
        return saved_tensors(self._average.module)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue with an average that :meth:`tensors` gave."""
        load_saved_tensors(self._average.module, tensors)

    @torch.no_grad()
    def update(self) -> None:
        """Include the module's present state."""
        buffers = averaged_buffers(self._average.module)
        before = {name: buffer.clone() for name, buffer in buffers.items()}
        self._average.update_parameters(self._module)  # copies all buffers
        for name, buffer in buffers.items():
            buffer.copy_(before[name].lerp_(buffer, 1 - self._decay))

    def copy_to_module(self) -> None:
        """Replace the module's state by the average."""
        self._module.load_state_dict(self._average.module.state_dict())

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The module has the average inside the ``with`` block, and its own state again after it."""
        own = {name: tensor.detach().clone() for name, tensor in self._module.state_dict().items()}
        self.copy_to_module()
        try:
            yield
        finally:
            self._module.load_state_dict(own)
