"""Rewards of sampled captions for self-critical training. A new one is one class and one line of :func:`make_rewards`.

CIDErBtw (Wang, Xu, Wang, Chan, ECCV 2020) of a caption is its mean CIDEr-D against the captions of similar images. A
caption that would fit them as well has a high one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import SPECIAL
from training.configs.schema import PhaseConfig
from training.data.things import Things
from training.evaluation.metrics.cider_d import MAX_SCORE, CiderD
from training.objectives.objective import TrainingCaptions


class Reward(NamedTuple):
    """A reward of captions; the total is the sum over the list."""

    score: Callable[[NDArray[np.integer], NDArray[np.integer]], NDArray[np.float64]]
    """Scores k captions for each of B images, (B, k): called with (B,) indices in the training split, and the words
    (B, k, T) as :meth:`training.evaluation.metrics.cider_d.CiderD.score` takes them."""
    largest: float
    """Largest absolute value."""


class SimilarityPenalty:
    """Minus a share of the caption's CIDErBtw; 0 for an image without similar ones."""

    def __init__(self, corpus: CiderD, similar: NDArray[np.int64], share: float) -> None:
        """
        Args:
            corpus: captions of the training images.
            similar: (images, K) indices of similar images, -1 where there are fewer than K.
            share: what CIDErBtw is multiplied by.
        """
        self._corpus, self._similar, self._share = corpus, similar, share

    def __call__(self, images: NDArray[np.integer], words: NDArray[np.integer]) -> NDArray[np.float64]:
        similar = self._similar[images]
        sums = np.zeros(words.shape[:2])
        for others in similar.T:
            there = others >= 0
            if there.any():
                sums[there] += self._corpus.score(others[there], words[there])
        cider_btw = sums / np.maximum((similar >= 0).sum(axis=1), 1)[:, None]
        return -self._share * cider_btw


class AbsentPenalty:
    """Minus a charge for each noun of a caption that neither the list of things nor the captions of its image support,
    and for each wrong colour: the image's captions give the thing another colour, or the colour to other things.

    Images without an exhaustive list are not charged.
    """

    def __init__(self, captions: TrainingCaptions, charge: float) -> None:
        """
        Args:
            captions: of the training images, with their lists of things.
            charge: for each thing or colour.
        """
        self._captions, self._charge = captions, charge
        self._things = Things.of_lists((names for names in captions.things if names), judge_all=True)
        self._shown: dict[int, frozenset[object]] = {}

    def __call__(self, images: NDArray[np.integer], words: NDArray[np.integer]) -> NDArray[np.float64]:
        charges = np.zeros(words.shape[:2])
        for row, image in enumerate(images.tolist()):
            if self._captions.things[image] is None:
                continue
            shown = self._of_image(image)
            for column, caption in enumerate(map(self._text, words[row].tolist())):
                absent, miscoloured = self._things.absent(caption, shown), self._things.miscoloured(caption, shown)
                charges[row, column] = len(absent) + len(miscoloured)
        return -self._charge * charges

    def _of_image(self, image: int) -> frozenset[object]:
        if image not in self._shown:
            captions = [" ".join(caption) for caption in self._captions.words[image]]
            self._shown[image] = self._things.shown(self._captions.things[image] or (), captions)
        return self._shown[image]

    def _text(self, ids: list[int]) -> str:
        words = self._captions.vocabulary.words
        return " ".join(words[word] for word in ids if word >= len(SPECIAL))


def make_rewards(captions: TrainingCaptions, phase: PhaseConfig) -> list[Reward]:
    """Make the rewards that a phase names."""
    corpus = CiderD.from_words(
        captions.words,
        captions.vocabulary,
        end_token=phase.reward_end_token,
        captions_are_documents=phase.reward_documents == "captions",
    )
    rewards = [Reward(corpus.score, MAX_SCORE)]
    if share := phase.cider_btw_reward:
        assert captions.similar is not None
        rewards.append(Reward(SimilarityPenalty(corpus, captions.similar, share), share * MAX_SCORE))
    if phase.absent_penalty and captions.things:
        largest = phase.absent_penalty * captions.max_words
        rewards.append(Reward(AbsentPenalty(captions, phase.absent_penalty), largest))
    return rewards
