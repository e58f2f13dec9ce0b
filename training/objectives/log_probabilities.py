"""Log probabilities of the nodes of prefix trees, which all objectives compute alike."""

import torch
from torch import Tensor


def log_probabilities(logits: Tensor) -> Tensor:
    """Compute the log probabilities of all words after each prefix.

    Args:
        logits: (B, Q, V).

    Returns:
        (B * Q, V), at least float32.
    """
    return logits.flatten(0, 1).log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
