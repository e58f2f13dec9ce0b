"""Optimizers and gradient clipping of a phase. A new optimizer is one line of the registry."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from training.configs.schema import ClippingConfig, OptimizerConfig
from training.engine.lamb import Lamb

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
