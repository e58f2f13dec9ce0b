"""Weighted fine-tuning after self-critical training (Honda, Watanabe, Matsumoto, WACV 2023).

Self-critical training concentrates the probability on frequent words. Cross-entropy on human captions restores the
rare ones; it is taken on the normalised product of the captioner p and a frozen reference q, the captioner at the
beginning of the phase:

    loss = - log( p(w) q(w)^b / sum over words v of p(v) q(v)^b )

Words to which the reference gives a high probability have a small gradient, the others a larger one. The captioner
alone is used afterwards. With the power b = 0 this is cross-entropy, the paper's simple fine-tuning. The paper has
b = 0.1, one epoch, a learning rate of 1e-5 for a Transformer and 1e-4 for LSTMs, and batches of 10 images; its code
trains the last linear layer alone.
"""

from typing import ClassVar

import numpy as np
import torch

from training.configs.schema import PhaseConfig
from training.data.prefix_trees import CaptionTrees
from training.models.captioner import Captioner, Visual
from training.objectives.cross_entropy import CrossEntropy, cross_entropy
from training.objectives.objective import BatchLoss, TrainingCaptions


class WeightedFineTuning(CrossEntropy):
    """Cross-entropy of the product with the reference; a :class:`training.objectives.objective.Objective`."""

    has_reference: ClassVar[bool] = True

    def __init__(self, captions: TrainingCaptions, phase: PhaseConfig, reference: Captioner | None = None) -> None:
        super().__init__(captions, phase)
        assert reference is not None
        self._reference, self._power = reference, phase.reference_power

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray, targets: CaptionTrees) -> BatchLoss:
        logits = captioner(visual, targets.tree)
        if self._power:
            with torch.no_grad():
                of_reference = self._reference(visual, targets.tree)
            # The normalisation of the product cancels those of its factors, so logits take the place of logarithms of
            # probabilities.
            logits = logits.float() + self._power * of_reference.float()
        return BatchLoss(cross_entropy(logits, targets.next_words, self._label_smoothing))
