"""Optimizers and gradient clipping of a phase. A new optimizer is one line of the registry."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from training.configs.schema import ClippingConfig, OptimizerConfig


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al., ICLR 2020, Algorithm 2), which torch does not have: Adam with each parameter's step scaled.

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
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the parameters that have a gradient; no closure computes them anew."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

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


OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "lamb": Lamb,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
}
"""By the name that an experiment gives. Each takes ``betas``, ``eps`` and ``weight_decay``."""

_FUSED = {"adam", "adamw"}
"""Optimizers that torch computes in one pass over the parameters, on CPU and CUDA.

The others take torch's choice: all parameters in one call on CUDA, one after the other on a CPU, where the several
passes over a parameter find it in the cache.
"""


def make_optimizer(config: OptimizerConfig, groups: Iterable[dict[str, Any]]) -> torch.optim.Optimizer:
    """Build the optimizer of a phase.

    Args:
        config: name and settings.
        groups: parameter groups, each with ``params`` and ``lr``.
    """
    kind: Any = OPTIMIZERS[config.name]
    fused = {"fused": True} if config.name in _FUSED else {}
    optimizer: torch.optim.Optimizer = kind(
        groups, betas=tuple(config.betas), eps=config.eps, weight_decay=config.weight_decay, **fused
    )
    return optimizer


def clip_gradient(parameters: Sequence[nn.Parameter], config: ClippingConfig) -> Tensor:
    """Clip the gradient of a module in place, without waiting for the device.

    Args:
        parameters: those of the module; those without a gradient are left out.
        config: rule and limit.

    Returns:
        () float, the norm of the gradient before clipping.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if config.by == "norm":
        nn.utils.clip_grads_with_norm_(parameters, config.limit, norm)
    elif config.by == "value":
        nn.utils.clip_grad_value_(parameters, config.limit)
    return norm
