"""Cross-entropy with teacher forcing, the first stage of SMArT's training (Sec. III-C)."""

import math
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor
from torch.nn import functional

from training.data.captions import encode_captions, pad_groups
from training.models.captioner import Captioner, Visual
from training.objectives.objective import HOPELESS, Outcome, TrainingCaptions

if TYPE_CHECKING:
    from training.configs.schema import PhaseConfig


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


class CrossEntropy:
    """Every human caption of an image is a target; the image is encoded once for all of them."""

    def __init__(self, captions: TrainingCaptions, phase: "PhaseConfig") -> None:
        self._padding_id = captions.vocabulary.padding_id
        self._label_smoothing = phase.label_smoothing
        self._captions = [
            encode_captions(words, captions.vocabulary, captions.max_caption_words) for words in captions.words
        ]
        # The begin token is no target.
        self._targets = np.array([sum(len(caption) - 1 for caption in group) for group in self._captions])
        self.largest_loss = HOPELESS * math.log(len(captions.vocabulary))

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray) -> Outcome:
        words = pad_groups([self._captions[image] for image in images], self._padding_id).to(visual.tokens.device)
        logits = captioner(visual, words[..., :-1])
        return Outcome(cross_entropy(logits, words[..., 1:], self._padding_id, self._label_smoothing))

    def weight(self, images: np.ndarray) -> float:
        return float(self._targets[images].sum())
