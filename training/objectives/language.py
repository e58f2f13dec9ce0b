"""Language alone: captions without pictures teach the decoder before, or between, those that have some."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from training.errors import DataError
from training.models.captioner import Captioner, Visual
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import Outcome, TrainingCaptions

if TYPE_CHECKING:
    from training.configs.schema import PhaseConfig


class Language:
    """Cross-entropy on ``data: text:``, with a single visual token of zeros in place of a photograph's.

    Captions with a word that the vocabulary lacks are left out: the decoder is to learn no word that it cannot see.
    Each photograph of the training split stands for one group of captions, in the order of the file, which begins
    anew when it ends; so an epoch has as many steps as any other.
    """

    def __init__(self, captions: TrainingCaptions, phase: "PhaseConfig") -> None:
        """
        Raises:
            DataError: no caption is made of the vocabulary's words.
        """
        known = set(captions.vocabulary.words)
        groups = [[words for words in group if words and known.issuperset(words)] for group in captions.text]
        groups = [group for group in groups if group]
        if not groups:
            raise DataError("data: text: no caption is made of words of the training split")
        words = [groups[place % len(groups)] for place in range(len(captions.words))]
        self._teacher = CrossEntropy(replace(captions, words=words), phase)
        self.largest_loss = self._teacher.largest_loss

    def __call__(self, captioner: Captioner, visual: Visual, images: np.ndarray) -> Outcome:
        return self._teacher(captioner, Visual(torch.zeros_like(visual.tokens[:, :1])), images)

    def weight(self, images: np.ndarray) -> float:
        return self._teacher.weight(images)
