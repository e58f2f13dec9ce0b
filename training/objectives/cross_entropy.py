"""Cross-entropy with teacher forcing, the first stage of SMArT's training (Sec. III-C)."""

from torch import Tensor
from torch.nn import functional


def cross_entropy(logits: Tensor, targets: Tensor, padding_id: int, label_smoothing: float = 0.0) -> Tensor:
    """Mean negative log probability of the target words, padding left out.

    Args:
        logits: (..., T, V).
        targets: (..., T) int64.
        label_smoothing: share of the target mass spread evenly over the vocabulary.

    Returns:
        () float32.
    """
    return functional.cross_entropy(
        logits.float().flatten(0, -2),
        targets.flatten(),
        ignore_index=padding_id,
        label_smoothing=label_smoothing,
    )
