"""Shapes of traced tensors, in which some sizes are dynamic."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

BATCH, TOKENS, SLOTS, STEPS = "batch", "tokens", "slots", "steps"
"""Names of the dynamic sizes: images, visual tokens of an image, words decoded before over all beams of an image, words
decoded of each beam."""
EXAMPLE_SIZES: Mapping[str, int] = {BATCH: 3, TOKENS: 11, SLOTS: 13, STEPS: 4}
"""For tracing. None is 0 or 1, which the exporter would take for fixed."""


class Size(NamedTuple):
    """A dynamic size: ``factor * symbol + offset``."""

    symbol: str
    factor: int = 1
    offset: int = 0

    def at(self, sizes: Mapping[str, int]) -> int:
        """Return the value, given those of the symbols."""
        return self.factor * sizes[self.symbol] + self.offset

    def __str__(self) -> str:
        factor = "" if self.factor == 1 else f"{self.factor}*"
        return f"{factor}{self.symbol}{f'{self.offset:+d}' if self.offset else ''}"


Shape: TypeAlias = tuple[int | Size, ...]


def shape_at(shape: Shape, sizes: Mapping[str, int]) -> list[int]:
    """Return the shape, given the values of the symbols."""
    return [axis.at(sizes) if isinstance(axis, Size) else axis for axis in shape]


class TensorSpec(NamedTuple):
    """Type and shape of a tensor."""

    dtype: torch.dtype
    shape: Shape

    def example(self, sizes: Mapping[str, int] = EXAMPLE_SIZES) -> Tensor:
        """Return a tensor with these sizes: of ones (True) if it is boolean, else of zeros."""
        make = torch.ones if self.dtype == torch.bool else torch.zeros
        return make(shape_at(self.shape, sizes), dtype=self.dtype)
