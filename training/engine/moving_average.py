"""An exponential moving average of the weights (Polyak & Juditsky, 1992).

With a constant learning rate the weights vary around an optimum; their average is nearer to it than any one of them,
and costs nothing on the robot.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from training.engine.buffers import averaged_buffers, load_saved_tensors, saved_tensors


class WeightAverage:
    """The average of a module's weights, updated after every step of its optimizer.

    Buffers whose policy says so are averaged, too; all other buffers have the latest value.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        """
        Args:
            module: its present state is the initial average.
            decay: share of the average that a step keeps, in [0, 1); the average covers about ``1 / (1 - decay)``
                steps.
        """
        self._module, self._decay = module, decay
        self._average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(decay))
        self._average.n_averaged.fill_(1)  # else the first update would replace the initial average

    def tensors(self) -> dict[str, Tensor]:
        """Return the average of all tensors that a checkpoint has of the module."""
        return saved_tensors(self._average.module)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue with an average that :meth:`tensors` returned."""
        load_saved_tensors(self._average.module, tensors)

    @torch.no_grad()
    def update(self) -> None:
        """Include the module's present state in the average."""
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
        """Set the module to the average inside the ``with`` block, and restore its state afterwards."""
        own = {name: tensor.detach().clone() for name, tensor in self._module.state_dict().items()}
        self.copy_to_module()
        try:
            yield
        finally:
            self._module.load_state_dict(own)
