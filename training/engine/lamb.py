"""LAMB (You et al., ICLR 2020), which torch does not have: Adam whose step is scaled by each parameter's norm."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class Lamb(Optimizer):
    """LAMB as in the paper's Algorithm 2.

    For each parameter x with Adam's bias-corrected update u = m / (sqrt(v) + eps) and r = u + weight_decay * x, the
    step is lr * |x| / |r| * r. The ratio is 1 where one of the norms is 0, and |x| is limited to ``largest_norm``.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        largest_norm: float = 10.0,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "largest_norm": largest_norm,
        }  # fmt: skip
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        step, (beta_1, beta_2) = float(state["step"]), group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta_1)
        square.mul_(beta_2).addcmul_(gradient, gradient, value=1 - beta_2)
        denominator = (square / (1 - beta_2**step)).sqrt_().add_(group["eps"])
        update = (mean / (1 - beta_1**step)).div_(denominator).add_(parameter, alpha=group["weight_decay"])
        norm, update_norm = parameter.norm().clamp(max=group["largest_norm"]), update.norm()
        ratio = torch.where((norm > 0) & (update_norm > 0), norm / update_norm, 1.0)
        parameter.sub_(update * (group["lr"] * ratio))
