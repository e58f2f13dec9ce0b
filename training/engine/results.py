"""Losses, rewards and gradient norms of training steps, which stay on the device until they are needed.

Reading a number from a GPU waits for all work that the GPU has been given, and summing it over the processes waits for
the slowest of them. Reading the results of several steps at once lets the CPU prepare the next steps meanwhile.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from training.engine.distributed import Processes
from training.errors import TrainingError


class UnreadResult(NamedTuple):
    """Result of a step in this process."""

    loss: Tensor
    """() float32 on the device, this process's share of the batch's loss: the sum over all processes is the loss."""
    reward: float | None
    """This process's share of the batch's reward; None for objectives without one."""
    gradient_norms: Mapping[str, Tensor]
    """() float32 on the device by module, before clipping; the same in all processes. Empty if none was computed."""


class StepResult(NamedTuple):
    """Loss, reward and gradient of a whole batch."""

    loss: float
    reward: float | None
    gradient_norms: dict[str, float]
    """By module, before clipping."""


class ResultReader:
    """Reads and checks the results of steps, some steps later than they are computed."""

    def __init__(self, processes: Processes, max_loss: float, *, overflows: bool = False) -> None:
        """
        Args:
            max_loss: a loss whose absolute value is greater has exploded.
            overflows: whether gradients may overflow, as scaled ones of fp16 do now and then.
        """
        self._processes, self._max_loss, self._overflows = processes, max_loss, overflows
        self._unread: list[tuple[UnreadResult, str]] = []
        self._last: list[StepResult] = []

    def add(self, result: UnreadResult, place: str) -> None:
        """Add the result of a step.

        Args:
            result: computed with the weights after the steps before it.
            place: phase, epoch and step for error messages.
        """
        self._unread.append((result, place))

    def read(self) -> list[StepResult]:
        """Wait for the device and the other processes, and check the results that were added since the last call.

        The weights after a step are known to be good when the result of the next one is. So the last result is checked,
        and returned by the next call.

        Returns:
            The results of the steps before the last one, since the last call, in their order.

        Raises:
            TrainingError: the loss or the norm of the gradient was not finite in a step, or the loss has exploded; the
                message names the first such step.
        """
        results = self._last
        for result, (_, place) in zip(self._totals(), self._unread, strict=True):
            if problem := self._problem(result):
                self._processes.fail(
                    TrainingError(
                        f"{problem}, at {place}; the last good checkpoint is kept: lower learning_rate or raise "
                        "warmup_steps"
                    )
                )
            results.append(result)
        self._unread, self._last = [], results[-1:]
        return results[:-1]

    def _totals(self) -> list[StepResult]:
        """Combine the unread results of all processes; every process gets the same."""
        if not self._unread:
            return []
        unread, processes = [result for result, _ in self._unread], self._processes
        on_device = [value for result in unread for value in (result.loss, *result.gradient_norms.values())]
        values = iter(torch.stack(on_device).tolist())  # waits for the device
        shares = []
        for result in unread:
            shares += [next(values), result.reward or 0.0]
            shares += [next(values) / processes.count for _ in result.gradient_norms]
        totals = iter(processes.sum(shares))
        results = []
        for result in unread:
            loss, reward = next(totals), next(totals)
            norms = {name: next(totals) for name in result.gradient_norms}
            results.append(StepResult(loss, None if result.reward is None else reward, norms))
        return results

    def _problem(self, result: StepResult) -> str | None:
        if not math.isfinite(result.loss):
            return f"the loss is {result.loss}"
        if abs(result.loss) > self._max_loss:
            return f"the loss is {result.loss:.3g}: it has exploded"
        for name, norm in result.gradient_norms.items():
            if not math.isfinite(norm) and not self._overflows:
                return f"the norm of the {name}'s gradient is {norm}"
        return None
