"""Weighted fine-tuning is cross-entropy on the normalised product of two distributions."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import TOKEN_WIDTH, padded_logits, tiny_captioner, tiny_visual
from training.configs.schema import PhaseConfig
from training.data.captions import EncodedCaptions
from training.data.tokenized_captions import TokenizedCaptions
from training.models.captioner import PADDING_ID, Captioner, CaptionerConfig, PrefixTree, Visual
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import TrainingCaptions
from training.objectives.weighted_fine_tuning import WeightedFineTuning

VOCABULARY = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))
CAPTIONS = TokenizedCaptions.from_words(
    [[["w4", "w5", "w6"], ["w4", "w5", "w7", "w8"], ["w9"]], [["w4", "w5"], ["w4", "w5"]], [["w10", "w11", "w12"]]]
)
WEIGHTS = np.array([0.5, 2.0, 1.0], np.float32)
IMAGES = np.array([2, 0, 1])
VISUAL = tiny_visual(3, 6, seed=3)


def captions() -> TrainingCaptions:
    return TrainingCaptions(CAPTIONS, VOCABULARY, 6, 6, WEIGHTS)


def phase(**options: Any) -> PhaseConfig:
    return PhaseConfig("fine_tuned", 1, 1e-5, objective="weighted_fine_tuning", **options)


def reference_of(captioner: Captioner) -> Captioner:
    """A captioner with other weights."""
    reference = copy.deepcopy(captioner).requires_grad_(False)
    for parameter in reference.parameters():
        parameter.mul_(0.8)
    return reference


def plain_loss(captioner: Captioner, reference: Captioner, power: float, smoothing: float) -> Tensor:
    """The definition, on probabilities of padded captions."""
    words = torch.from_numpy(EncodedCaptions(CAPTIONS, VOCABULARY, 6).read(IMAGES))
    own, frozen = (padded_logits(each, VISUAL, words[..., :-1]).softmax(-1) for each in (captioner, reference))
    product = own * frozen**power
    product = product / product.sum(-1, keepdim=True)
    targets = words[..., 1:]
    of_words = -product.gather(-1, targets[..., None])[..., 0].log()
    of_words = (1 - smoothing) * of_words - smoothing * product.log().mean(-1)
    weights = (targets != PADDING_ID) * torch.from_numpy(WEIGHTS)[IMAGES][:, None, None]
    return (of_words * weights).sum() / weights.sum()


@pytest.mark.parametrize("family", ["smart", "up_down"])
@pytest.mark.parametrize(("power", "smoothing"), [(0.1, 0.0), (1.0, 0.0), (0.1, 0.2)])
def test_loss_and_gradient_are_those_of_the_definition(family: str, power: float, smoothing: float) -> None:
    captioner = tiny_captioner(family)
    reference = reference_of(captioner)
    options = phase(reference_power=power, label_smoothing=smoothing)
    objective = WeightedFineTuning(captions(), options, reference)
    found = objective(captioner, VISUAL, IMAGES, objective.targets(IMAGES)).loss
    expected = plain_loss(captioner, reference, power, smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    parameters = list(captioner.parameters())
    for own, theirs in zip(
        torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters), strict=True
    ):
        torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-6)
    assert all(parameter.grad is None for parameter in reference.parameters())


def test_power_0_is_cross_entropy() -> None:
    captioner = tiny_captioner("smart")
    plain = CrossEntropy(captions(), phase())
    weighted = WeightedFineTuning(captions(), phase(reference_power=0.0), reference_of(captioner))
    losses = [each(captioner, VISUAL, IMAGES, each.targets(IMAGES)).loss for each in (plain, weighted)]
    assert torch.equal(*losses)
    assert np.array_equal(plain.weights(IMAGES), weighted.weights(IMAGES))


class Favouring(Captioner):
    """A reference with the same logits after every prefix: 4 for some words, 0 for the others."""

    def __init__(self, *words: str) -> None:
        super().__init__(CaptionerConfig(len(VOCABULARY), TOKEN_WIDTH))
        self._logits = torch.zeros(len(VOCABULARY))
        self._logits[VOCABULARY.encode(words)] = 4.0

    def forward(self, visual: Visual, tree: PrefixTree) -> Tensor:
        return self._logits.expand(*tree.words.shape, -1)


def test_the_gradient_of_words_that_the_reference_expects_is_smaller() -> None:
    captioner, image = tiny_captioner("smart"), np.array([1])  # w4 w5

    def gradient(reference: Captioner) -> float:
        objective = WeightedFineTuning(captions(), phase(reference_power=1.0), reference)
        visual = Visual(VISUAL.tokens[:1])
        loss = objective(captioner, visual, image, objective.targets(image)).loss
        return float(torch.autograd.grad(loss, captioner.word_projection.weight)[0].norm())

    expected, flat, unexpected = map(gradient, (Favouring("w4", "w5"), Favouring(), Favouring("w20", "w21")))
    assert expected < 0.9 * flat < flat < unexpected
