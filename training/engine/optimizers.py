"""Optimizers and gradient clipping of a phase. A new optimizer is one line of the registry."""

import re
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
        if not (state := self.state[parameter]):
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        step, (beta_1, beta_2) = float(state["step"]), group["betas"]
        mean = state["exp_avg"].lerp_(gradient, 1 - beta_1)
        square = state["exp_avg_sq"].mul_(beta_2).addcmul_(gradient, gradient, value=1 - beta_2)
        denominator = (square / (1 - beta_2**step)).sqrt_().add_(group["eps"])
        update = (mean / (1 - beta_1**step)).div_(denominator).add_(parameter, alpha=group["weight_decay"])
        norm, update_norm = parameter.norm().clamp(max=group["largest_norm"]), update.norm()
        ratio = torch.where((norm > 0) & (update_norm > 0), norm / update_norm, 1.0)
        parameter.add_(update.mul_(ratio * -group["lr"]))


OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "lamb": Lamb,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "sgd": torch.optim.SGD,
}
"""By the name that an experiment gives. ``sgd`` takes ``momentum``, the others ``betas`` and ``eps``."""

_FUSED = {"adam", "adamw"}
"""Optimizers that torch computes in one pass over the parameters, on CPU and CUDA.

The others of torch take its choice: all parameters in one call on CUDA, one after the other on a CPU, where the several
passes over a parameter find it in the cache.
"""


def layers_with_factors(module: nn.Module, decay: float) -> list[tuple[list[nn.Parameter], float]]:
    """Divide the parameters of a network by layers, each with the factor of its learning rate (Clark et al., 2020).

    A layer is what has one number in the names of its parameters (``blocks.3.``). Parameters before all layers count
    as layer 0, those after as the last, whose factor is 1. Networks side by side are divided one by one.
    """
    if decay == 1:
        return [(list(module.parameters()), 1.0)]
    if isinstance(module, nn.ModuleList):
        return [layer for network in module for layer in layers_with_factors(network, decay)]
    numbers = {name: re.search(r"\.(\d+)\.", name) for name, _ in module.named_parameters()}
    count = max((int(number[1]) + 1 for number in numbers.values() if number), default=0)
    layers: dict[int, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        number = numbers[name]
        outside = count + 1 if layers.keys() - {0} else 0
        layers.setdefault(int(number[1]) + 1 if number else outside, []).append(parameter)
    last = max(layers)
    return [(parameters, decay ** (last - place)) for place, parameters in sorted(layers.items())]


def parameter_groups(
    module: nn.Module, config: OptimizerConfig, parameters: Sequence[nn.Parameter] | None = None, **settings: Any
) -> list[dict[str, Any]]:
    """Divide the parameters of a module, or some of them, into those that decay and those that do not.

    Matrices decay, except embeddings: a decay of biases and of the factors of normalisations only weakens the fit, and
    one of embeddings shrinks those of rare words.
    """
    parameters = list(module.parameters() if parameters is None else parameters)
    if not config.weight_decay:
        return [{"params": parameters, **settings}]
    embeddings = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
    decaying = [p for p in parameters if p.dim() > 1 and id(p) not in embeddings]
    known = set(map(id, decaying))
    others = [p for p in parameters if id(p) not in known]
    return [{"params": decaying, **settings}, {"params": others, **settings, "weight_decay": 0.0}]


def make_optimizer(config: OptimizerConfig, groups: Iterable[dict[str, Any]]) -> torch.optim.Optimizer:
    """Build the optimizer of a phase.
    ``groups``: parameter groups, each with ``params`` and ``lr``.
    """
    kind: Any = OPTIMIZERS[config.name]
    options: dict[str, Any] = {"betas": tuple(config.betas), "eps": config.eps}
    if config.name == "sgd":
        options = {"momentum": config.momentum}
    elif config.name in _FUSED:
        options["fused"] = True
    optimizer: torch.optim.Optimizer = kind(groups, weight_decay=config.weight_decay, **options)
    return optimizer


def clip_gradient(parameters: Sequence[nn.Parameter], config: ClippingConfig) -> Tensor:
    """Clip the gradient of a module in place, without waiting for the device.
    ``parameters``: those of the module; those without a gradient are left out.

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
