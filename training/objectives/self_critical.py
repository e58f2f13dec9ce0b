"""Self-critical training on beams, the second stage of SMArT's training (Sec. III-C, Eq. 9), as in M2's code.

The k hypotheses of one beam search, made with dropout on, are the samples of an image. Their reward r is a sum, usually
of CIDEr-D alone (:mod:`training.objectives.rewards`), and the mean of the k rewards is the baseline b:

    loss = - mean over images and beams of  (r - b) * (1 / T) sum over steps of log p(word)

T is the greatest length, the same for all captions, so it scales the step and favours no length. For samples drawn
from the model, the expectation of the gradient is (k - 1) / (k T) times that of the negative expected reward, because
the baseline contains 1 / k of a sample's own reward. Beams are not drawn but are the most probable captions, so
training maximises the reward of the captions that the robot would choose.

The search computes no gradients. Its captions are then decoded once more, all words at once, for the gradient of their
log probabilities; the images are encoded once for both. Without dropout the gradient equals that through the search.
With dropout the encoded images have the same masks in both passes, while the decoder draws new masks in the second:
captions are chosen by one sample of the decoder and their probabilities raised or lowered in another, as in every
training step of cross-entropy.
"""

import math

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.schema import PhaseConfig
from training.data.prefix_trees import prefix_trees
from training.decoding.beam_search import SearchSettings, excluded_words, search_captions
from training.models.captioner import Captioner, Visual
from training.models.eight_bits import rounded_once
from training.objectives.objective import MAX_LOSS_FACTOR, BatchLoss, Objective, TrainingCaptions, log_probabilities
from training.objectives.rewards import make_rewards


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


class SelfCritical(Objective):
    """The loss of self-critical training on a batch. The length of the captions that will be found is unknown."""

    def __init__(self, captions: TrainingCaptions, phase: PhaseConfig) -> None:
        """``captions``: of the training split; their weights multiply the reward."""
        # Without penalties of words: captions are sampled by the probabilities that the loss changes.
        search = captions.search.changed(
            beam_size=phase.beam_size, max_words=captions.max_words, repeat_penalty=0.0, end_penalty=0.0
        )
        self._search = SearchSettings(**vars(search), stop="all", attention=False)
        self._rewards, self._image_weights = make_rewards(captions, phase), captions.weights
        largest = sum(reward.largest for reward in self._rewards)
        self.max_loss = largest * MAX_LOSS_FACTOR * math.log(len(captions.vocabulary))

    def reward(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute the rewards of k captions for each of B images, (B, k) float64.

        Args:
            images: (B,) integers, their indices in the training split.
            words: (B, k, T), as :class:`training.objectives.rewards.Reward` takes them.
        """
        total: np.ndarray = sum((reward.score(images, words) for reward in self._rewards), np.zeros(words.shape[:2]))
        return total if self._image_weights is None else total * self._image_weights[images, None]

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray, targets: None = None) -> BatchLoss:
        encoded = captioner.encode(visual)
        with torch.inference_mode(), rounded_once():
            words = search_captions(captioner, encoded, visual, self._search).words.cpu().numpy()
        # Autocast would take the weights that it has converted without gradients for the pass with gradients.
        torch.clear_autocast_cache()
        begin = np.full_like(words[..., :1], Vocabulary.begin_id)
        trees, device = prefix_trees(np.concatenate([begin, words], axis=2)), visual.tokens.device
        tree, next_words = tree_map_only(Tensor, lambda part: part.to(device), trees)
        logits = captioner.decode_tree(tree, encoded)
        allowed = log_probabilities(logits + excluded_words(logits.shape[-1], self._search.forbidden, logits.device))
        chosen = next_words.by_caption(next_words.select(allowed))
        # After the pass has been queued: a GPU computes it while the processor computes the reward.
        scores = self.reward(images, words)
        rewards = torch.from_numpy(scores).to(chosen)
        return BatchLoss(self_critical_loss(chosen, rewards), float(scores.mean()))
