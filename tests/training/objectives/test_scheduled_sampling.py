"""Scheduled sampling: the published schedule, and the loss that it leaves unchanged without samples."""

import dataclasses

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import tiny_captioner, tiny_visual
from training.configs.schema import PhaseConfig, ScheduledSamplingConfig
from training.models.captioner import Captioner, HookContext, Step
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import TrainingCaptions
from training.objectives.scheduled_sampling import decode_with_samples, sampling_probability

PUBLISHED = ScheduledSamplingConfig(maximum=0.5)
VOCABULARY = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))
CAPTIONS = [[["w4", "w5", "w6"], ["w4", "w5", "w7", "w8"]], [["w4", "w5", "w6"], ["w4", "w5", "w6"]], [["w10"]]]
IMAGES = np.array([2, 0, 1])


def published_probability(epoch):
    """The published code sets the probability of the next epoch at the end of each one."""
    probability = 0.0
    for done in range(epoch):
        if done > 6:
            probability = min(0.05 * ((done - 6) // 5), 0.5)
    return probability


def test_the_schedule_is_the_published_one():
    for epoch in range(80):
        assert sampling_probability(PUBLISHED, epoch) == pytest.approx(published_probability(epoch))
    assert sampling_probability(PUBLISHED, 11) == 0
    assert sampling_probability(PUBLISHED, 12) == 0.05
    assert sampling_probability(ScheduledSamplingConfig(), 79) == 0


class Recorded(Captioner):
    """Predicts word 7 after every word, and records the words that it is given."""

    def __init__(self, captioner):
        super().__init__(captioner.config)
        self.given = []

    def initial_state(self, encoded, sequences):
        return None

    def decode(self, words, position, past, state, encoded, *, attention=True):
        self.given.append(words[..., 0])
        logits = torch.zeros(*words.shape, self.config.vocabulary_size)
        logits[..., 7] = 100.0
        logits[..., 0] = 200.0  # padding is never drawn
        return Step(logits, None, None)


def test_the_given_share_of_the_words_after_the_begin_token_is_drawn_from_the_predictions():
    torch.manual_seed(0)
    recorded = Recorded(tiny_captioner("up_down"))
    words = torch.full((40, 5, 11), 9)
    words[..., 0] = Vocabulary.begin_id
    decode_with_samples(recorded, None, words, 0.25)
    given = torch.stack(recorded.given, dim=2)
    assert (given[..., 0] == Vocabulary.begin_id).all()
    assert set(given[..., 1:].unique().tolist()) == {7, 9}
    assert (given[..., 1:] == 7).float().mean().item() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_captions_that_repeat_a_prefix_count_as_in_the_tree(smoothing):
    captioner, visual = tiny_captioner("x_lan"), tiny_visual(3, 5, seed=2)
    captions = TrainingCaptions(CAPTIONS, VOCABULARY, 6, 6, np.array([1.0, 3.0, 0.5], np.float32))
    phase = PhaseConfig("xe", 40, 1e-3, label_smoothing=smoothing)
    sampling = dataclasses.replace(phase, scheduled_sampling=ScheduledSamplingConfig(maximum=1e-12))  # no word changes
    losses = []
    for own_phase in (phase, sampling):
        objective = CrossEntropy(captions, own_phase)
        objective.on_step(HookContext("xe", 39, 0, 2, np.random.default_rng(0)))
        losses.append(objective(captioner, visual, IMAGES, objective.targets(IMAGES)).loss)
    torch.testing.assert_close(losses[0], losses[1], atol=1e-5, rtol=1e-5)
