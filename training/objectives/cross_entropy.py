"""Cross-entropy with teacher forcing, the first stage of SMArT's training (Sec. III-C)."""

import math

import numpy as np
from torch import Tensor
from torch.nn import functional

from training.configs.schema import PhaseConfig
from training.data.captions import encode_captions, pad_groups
from training.models.captioner import PADDING_ID, Captioner, Visual
from training.objectives.objective import MAX_LOSS_FACTOR, BatchLoss, TrainingCaptions


def cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Compute the mean negative log probability of the target words, without padding.

    Args:
        logits: (..., T, V).
        targets: (..., T) int64.
        label_smoothing: share of the target mass that is spread evenly over the vocabulary.

    Returns:
        () float32.
    """
    return functional.cross_entropy(
        logits.float().flatten(0, -2),
        targets.flatten(),
        ignore_index=PADDING_ID,
        label_smoothing=label_smoothing,
    )


class CrossEntropy:
    """Cross-entropy on all human captions of an image, which is encoded once for all of them.

    A :class:`training.objectives.objective.Objective`.
    """

    def __init__(self, captions: TrainingCaptions, phase: PhaseConfig) -> None:
        self._label_smoothing = phase.label_smoothing
        self._captions = [
            encode_captions(words, captions.vocabulary, captions.max_caption_words) for words in captions.words
        ]
        # Target words of each image; the begin token is not a target.
        self._targets = np.array([sum(len(caption) - 1 for caption in group) for group in self._captions])
        self.max_loss = MAX_LOSS_FACTOR * math.log(len(captions.vocabulary))

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray) -> BatchLoss:
        words = pad_groups([self._captions[image] for image in images], PADDING_ID).to(visual.tokens.device)
        logits = captioner(visual, words[..., :-1])
        return BatchLoss(cross_entropy(logits, words[..., 1:], self._label_smoothing))

    def weight(self, images: np.ndarray) -> float:
        return float(self._targets[images].sum())
