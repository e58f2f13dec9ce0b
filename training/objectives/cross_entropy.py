"""Cross-entropy with teacher forcing, the first stage of SMArT's training (Sec. III-C)."""

import math

import numpy as np
from torch import Tensor

from training.configs.schema import PhaseConfig
from training.data.captions import caption_ids, pad_captions
from training.data.prefix_trees import CaptionTrees, NextWords, prefix_trees
from training.models.captioner import Captioner, HookContext, Visual
from training.objectives.objective import MAX_LOSS_FACTOR, BatchLoss, Objective, TrainingCaptions, log_probabilities
from training.objectives.presence import PresenceLoss
from training.objectives.scheduled_sampling import decode_with_samples, next_words_of_captions, sampling_probability


def cross_entropy(logits: Tensor, next_words: NextWords, label_smoothing: float = 0.0) -> Tensor:
    """Compute the mean negative log probability of the next words.

    Args:
        logits: (B, Q, V), for each prefix.
        label_smoothing: share of the target mass that is spread evenly over the vocabulary.

    Returns:
        () float32.
    """
    of_all_words = log_probabilities(logits)
    weights = next_words.weights / next_words.weights.sum()
    loss = -(next_words.select(of_all_words) * weights).sum()
    if label_smoothing:
        uniform = -(of_all_words.mean(dim=-1)[next_words.nodes] * weights).sum()
        loss = loss.lerp(uniform, label_smoothing)
    return loss


class CrossEntropy(Objective):
    """Cross-entropy on all human captions of an image, which is encoded once for all of them."""

    def __init__(self, captions: TrainingCaptions, phase: PhaseConfig) -> None:
        self._label_smoothing = phase.label_smoothing
        self._sampling = phase.scheduled_sampling
        self._sampled_share = 0.0
        """Probability that an input word is replaced by a sample in this step."""
        self._presence_weight = phase.presence_weight
        self._presence: PresenceLoss | None = None
        self._captions = captions
        count = len(captions.words)
        self._weights = np.ones(count) if captions.weights is None else captions.weights.astype(float)
        self._words, self._prefixes = np.empty(count), np.empty(count, np.int32)
        """(images,) target words and prefixes of each image; the begin token is not a target."""
        for image in range(count):
            ids = self._ids(image)
            self._words[image] = sum(len(caption) - 1 for caption in ids)
            self._prefixes[image] = len({tuple(own[:place]) for own in ids for place in range(1, len(own))})
        self.max_loss = MAX_LOSS_FACTOR * math.log(len(captions.vocabulary))

    def _ids(self, image: int) -> list[list[int]]:
        captions = self._captions
        return caption_ids(captions.words[image], captions.vocabulary, captions.max_caption_words)

    def on_step(self, context: HookContext) -> None:
        self._sampled_share = sampling_probability(self._sampling, context.epoch)

    def targets(self, images: np.ndarray) -> CaptionTrees:
        captions = pad_captions([self._ids(image) for image in images])
        return prefix_trees(captions, np.repeat(self._weights[images, None], captions.shape[1], axis=1))

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray, targets: CaptionTrees) -> BatchLoss:
        tree, next_words = targets
        presence = self._presence_loss(captioner, visual, images)
        if self._sampled_share:
            captions = decode_with_samples(captioner, captioner.encode(visual), tree.captions, self._sampled_share)
            logits, next_words = captions.flatten(1, 2), next_words_of_captions(next_words)
        else:
            logits = captioner(visual, tree)
        loss = cross_entropy(logits, next_words, self._label_smoothing)
        return BatchLoss(loss if presence is None else loss + self._presence_weight * presence)

    def _presence_loss(self, captioner: Captioner, visual: Visual, images: np.ndarray) -> Tensor | None:
        """Compute the presence loss, None in a phase or for data without one."""
        if not (self._presence_weight and self._captions.things and captioner.thing_count):
            return None
        if self._presence is None:
            self._presence = PresenceLoss(self._captions.things, captioner.thing_count)
        return self._presence(captioner.thing_logits(visual), images)

    def weights(self, images: np.ndarray) -> np.ndarray:
        weighted_words: np.ndarray = self._words[images] * self._weights[images]
        return weighted_words

    def costs(self, images: np.ndarray) -> np.ndarray:
        return self._prefixes[images].astype(float)
