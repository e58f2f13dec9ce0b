"""Self-critical training on beams, the second stage of SMArT's training (Sec. III-C, Eq. 9), as in M2's code.

The k hypotheses of one beam search, made with dropout on, are the samples of an image. CIDEr-D is their reward r, and
the mean of the k rewards is the baseline b:

    loss = - mean over images and beams of  (r - b) * (1 / T) sum over steps of log p(word)

T is the greatest length, the same for all captions, so it scales the step and favours no length. For samples drawn
from the model, the expectation of the gradient is (k - 1) / (k T) times that of the negative expected reward, because
the baseline contains 1 / k of a sample's own reward. Beams are not drawn but are the most probable captions, so
training maximises the reward of the captions that the robot would choose.

Options of the phase weight the captions of CIDEr-D by their CIDErBtw and subtract a share of the sampled caption's
CIDErBtw from the reward (:mod:`training.objectives.distinctiveness`). This part of the reward counts by the weight of
the image's captions. Another option rewards the objects that a caption names rightly
(:mod:`training.objectives.noun_support`).

The search computes no gradients. Its captions are then decoded once more, all words at once, for the gradient of their
log probabilities; the images are encoded once for both. Without dropout the gradient equals that through the search.
With dropout the encoded images have the same masks in both passes, while the decoder draws new masks in the second:
captions are chosen by one sample of the decoder and their probabilities raised or lowered in another, as in every
training step of cross-entropy.
"""

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.schema import PhaseConfig
from training.data.prefix_trees import prefix_trees
from training.decoding.beam_search import SearchSettings, excluded_words, search_captions
from training.evaluation.metrics.cider_d import MAX_SCORE, CiderD
from training.models.captioner import Captioner, HookContext, Visual
from training.models.eight_bits import rounded_once
from training.objectives.log_probabilities import log_probabilities
from training.objectives.objective import MAX_LOSS_FACTOR, BatchLoss, TrainingCaptions


def self_critical_loss(log_probabilities: Tensor, rewards: Tensor) -> Tensor:
    """Compute the loss of REINFORCE with the mean of an image's rewards as baseline.

    Args:
        log_probabilities: (B, k, T) of the words, 0 after the end token.
        rewards: (B, k), constants.

    Returns:
        () of the log probabilities' type.
    """
    advantages = rewards - rewards.mean(dim=1, keepdim=True)
    return -(advantages.detach()[..., None] * log_probabilities).mean()


class SelfCritical:
    """The loss of self-critical training on a batch; a :class:`training.objectives.objective.Objective`."""

    has_reference: ClassVar[bool] = False

    def __init__(self, captions: TrainingCaptions, phase: PhaseConfig, reference: Captioner | None = None) -> None:
        self._search = SearchSettings(phase.beam_size, captions.max_words, stop="all", attention=False)
        self._corpus = CiderD.from_words(captions.words, captions.vocabulary, end_token=phase.reward_end_token)
        self._weights = captions.caption_weights(phase.cider_btw_weighting)
        self._image_weights = captions.weights
        self._btw_share = phase.cider_btw_reward
        self._similar = captions.distinctiveness.similar if captions.distinctiveness else None
        largest = MAX_SCORE * (1 if self._weights is None else self._weights.max()) + self._btw_share * MAX_SCORE
        self.max_loss = largest * MAX_LOSS_FACTOR * math.log(len(captions.vocabulary))

    def reward(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute the rewards of k captions for each of B images, (B, k) float64.

        Args:
            images: (B,) integers, their indices in the training split.
            words: (B, k, T), as :meth:`training.evaluation.metrics.cider_d.CiderD.score` takes them.
        """
        rewards = self._corpus.score(images, words, None if self._weights is None else self._weights[images])
        if self._btw_share:
            rewards -= self._btw_share * self._cider_btw(images, words)
        if self._image_weights is not None:
            rewards *= self._image_weights[images, None]
        return rewards

    def _cider_btw(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute the mean CIDEr-D of captions against the captions of similar images; 0 for an image without any."""
        assert self._similar is not None
        similar = self._similar[images]
        sums = np.zeros(words.shape[:2])
        for others in similar.T:
            there = others >= 0
            if there.any():
                sums[there] += self._corpus.score(others[there], words[there])
        return sums / np.maximum((similar >= 0).sum(axis=1), 1)[:, None]

    def on_step(self, context: HookContext) -> None:
        """All steps are alike."""

    def targets(self, images: np.ndarray) -> None:
        """The captions of the images are targets of the reward alone."""

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray, targets: None = None) -> BatchLoss:
        encoded = captioner.encode(visual)
        with torch.inference_mode(), rounded_once():
            words = search_captions(captioner, encoded, visual, self._search).words.cpu().numpy()
        # Autocast would take the weights that it has converted without gradients for the pass with gradients.
        torch.clear_autocast_cache()
        scores = self.reward(images, words)
        begin = np.full_like(words[..., :1], Vocabulary.begin_id)
        tree, next_words = prefix_trees(np.concatenate([begin, words], axis=2)).to(visual.tokens.device)
        logits = captioner.decode_tree(tree, encoded)
        allowed = log_probabilities(logits + excluded_words(logits.shape[-1], self._search.forbidden, logits.device))
        chosen = next_words.by_caption(next_words.select(allowed))
        rewards = torch.from_numpy(scores).to(chosen)
        return BatchLoss(self_critical_loss(chosen, rewards), float(scores.mean()))

    def weights(self, images: np.ndarray) -> np.ndarray:
        return np.ones(len(images))

    def costs(self, images: np.ndarray) -> np.ndarray:
        return np.ones(len(images))  # the length of the captions that will be found is unknown
