"""Presence loss: which of the things of exhaustive lists an image shows, beside the captions' cross-entropy.

Asymmetric loss (Ridnik et al., ICCV 2021, Eq. 4 and 5): absent things, far more than present ones, count less the surer
the captioner is that they are absent, and not at all below a probability of ``MARGIN``.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

NEGATIVE_FOCUS, MARGIN = 3.0, 0.05
"""Exponent of absent things, and the probability below which they cost nothing."""


def asymmetric_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Compute the mean loss of the present things, and of as many absent ones as there are.

    Args:
        logits: (B, K) of K things.
        present: (B, K) bool.

    Returns:
        () float32, the sum over all things divided by the number of present ones.
    """
    probabilities = logits.float().sigmoid()
    shifted = (probabilities - MARGIN).clamp(min=0)
    of_present = torch.nn.functional.logsigmoid(logits.float())
    of_absent = shifted.pow(NEGATIVE_FOCUS) * torch.log1p(-shifted.clamp(max=1 - 1e-6))
    return -torch.where(present, of_present, of_absent).sum() / present.sum().clamp(min=1)


class PresenceLoss:
    """The presence loss of the training split's images that have a list."""

    def __init__(self, lists: Sequence[Collection[str] | None], count: int) -> None:
        """
        Args:
            lists: for each image its exhaustive list of things, None where there is none.
            count: K, number of the most frequent names that are predicted.
        """
        counts = Counter(name for names in {id(names): names for names in lists if names}.values() for name in names)
        self.names = [name for name, _ in counts.most_common(count)]
        numbers = {name: number for number, name in enumerate(self.names)}
        self.present = torch.zeros(len(lists), count, dtype=torch.bool)
        self.known: NDArray[np.bool_] = np.array([names is not None for names in lists])
        for row, names in enumerate(lists):
            self.present[row, [numbers[name] for name in names or () if name in numbers]] = True

    def __call__(self, logits: Tensor, images: np.ndarray) -> Tensor:
        """Compute the loss of B images; 0 if none has a list.

        Args:
            logits: (B, K).
            images: (B,) indices in the training split.
        """
        rows = np.flatnonzero(self.known[images])
        if not len(rows):
            return 0.0 * logits.sum()
        present = self.present[torch.from_numpy(images[rows])].to(logits.device)
        return asymmetric_loss(logits[torch.from_numpy(rows).to(logits.device)], present)
