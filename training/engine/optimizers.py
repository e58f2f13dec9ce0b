"""Optimizers and gradient clipping of a phase. A new optimizer is one line of the registry."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from training.configs.schema import ClippingConfig, OptimizerConfig

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
}
"""By the name that an experiment gives. Each takes ``betas``, ``eps`` and ``weight_decay``."""


def make_optimizer(config: OptimizerConfig, groups: Iterable[dict[str, Any]]) -> torch.optim.Optimizer:
    """Build the optimizer of a phase.

    Args:
        config: name and settings.
        groups: parameter groups, each with ``params`` and ``lr``.
    """
    kind: Any = OPTIMIZERS[config.name]
    optimizer: torch.optim.Optimizer = kind(
        groups, betas=tuple(config.betas), eps=config.eps, weight_decay=config.weight_decay
    )
    return optimizer


def clip_gradient(module: nn.Module, config: ClippingConfig) -> Tensor:
    """Clip the gradient of a module in place.

    Returns:
        () float, the norm of the gradient before clipping.
    """
    limit = config.limit if config.by == "norm" else math.inf
    norm = nn.utils.clip_grad_norm_(module.parameters(), limit)
    if config.by == "value":
        nn.utils.clip_grad_value_(module.parameters(), config.limit)
    return norm
