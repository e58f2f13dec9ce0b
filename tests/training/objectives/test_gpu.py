"""Objectives and search on an NVIDIA GPU have the loss, gradient and beams of the CPU, and nearly so in bf16."""

import copy

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import tiny_captioner, tiny_visual
from training.configs.schema import PhaseConfig
from training.decoding.beam_search import SearchSettings, beam_search
from training.engine.distributed import Processes, choose_device
from training.models import FAMILIES
from training.models.captioner import Visual
from training.objectives import OBJECTIVES
from training.objectives.objective import TrainingCaptions

pytestmark = pytest.mark.needs_gpu
IMAGES, TOKENS = 4, 6
VOCABULARY = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))  # of the tiny captioners


def training_captions(seed):
    random = np.random.default_rng(seed)
    words = VOCABULARY.words[len(SPECIAL) :]
    captions = [[random.choice(words, random.integers(2, 8)).tolist() for _ in range(3)] for _ in range(IMAGES)]
    return TrainingCaptions(captions, VOCABULARY, 8, 12)


def step(name, captioner, device, precision="fp32"):
    """Return a function that adds the gradient of a batch to the captioner's parameters, as the trainer does."""
    processes = Processes(choose_device(device))
    processes.precision = precision
    phase = PhaseConfig(name="p", epochs=1, learning_rate=1.0, objective=name, beam_size=3)
    objective = OBJECTIVES[name](training_captions(seed=1), phase)
    images = np.arange(IMAGES)
    visual = processes.to_device(tiny_visual(IMAGES, TOKENS, seed=1))
    targets = processes.to_device(objective.targets(images))

    def run():
        with processes.autocast():
            result = objective(captioner, visual, images, targets)
        result.loss.backward()
        return result

    return run


def gradients(captioner):
    return {name: p.grad.float().cpu() for name, p in captioner.named_parameters() if p.grad is not None}


def assert_same(found, expected, tolerance):
    assert found.keys() == expected.keys()
    assert any(gradient.abs().max() > 1e-4 for gradient in expected.values())
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=tolerance, rtol=tolerance, msg=name)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_loss_and_gradient_are_those_of_the_cpu(name, family):
    reference = tiny_captioner(family)
    captioner = copy.deepcopy(reference).to("cuda")
    expected, found = step(name, reference, "cpu")(), step(name, captioner, "cuda")()
    assert found.loss.item() == pytest.approx(expected.loss.item(), abs=1e-4)
    assert found.reward == pytest.approx(expected.reward, abs=1e-5)
    assert_same(gradients(captioner), gradients(reference), 1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_beams_are_those_of_the_cpu(family):
    captioner, visual = tiny_captioner(family), tiny_visual(IMAGES, TOKENS, seed=1)
    on_gpu = Visual(*(part if part is None else part.cuda() for part in visual))
    with torch.inference_mode():
        expected = beam_search(captioner, visual, SearchSettings(max_words=8))
        found = beam_search(copy.deepcopy(captioner).cuda(), on_gpu, SearchSettings(max_words=8))
    assert torch.equal(found.words[:, 0].cpu(), expected.words[:, 0])
    torch.testing.assert_close(found.scores[:, 0].cpu(), expected.scores[:, 0], atol=1e-3, rtol=0)
