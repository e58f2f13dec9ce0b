"""Cross-entropy on prefix trees equals that of torch on padded captions."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import padded_logits, tiny_captioner, tiny_visual
from training.configs.schema import PhaseConfig
from training.data.captions import caption_ids, pad_captions
from training.models.captioner import PADDING_ID, Visual
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import TrainingCaptions

WORDS = (*SPECIAL, *(f"w{index}" for index in range(4, 30)))
CAPTIONS = [
    [["w4", "w5", "w6"], ["w4", "w5", "w7", "w8"], ["w9"]],
    [["w4", "w5", "w6"], ["w4", "w5", "w6"]],  # the same caption twice
    [["w10", "w11", "w12", "w13", "w14", "w15", "w16", "w17"]],  # cut: it has no end token
]


@pytest.mark.parametrize("family", ["smart", "up_down"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradient_are_those_of_padded_captions(family, smoothing):
    captioner, visual, vocabulary = tiny_captioner(family), tiny_visual(3, 6, seed=3), Vocabulary(WORDS)
    phase = PhaseConfig("xe", 1, 1e-3, label_smoothing=smoothing)
    objective = CrossEntropy(TrainingCaptions(CAPTIONS, vocabulary, 6, 6), phase)
    images = np.array([2, 0, 1])
    found = objective(captioner, visual, images, objective.targets(images)).loss
    words = torch.from_numpy(pad_captions([caption_ids(CAPTIONS[image], vocabulary, 6) for image in images]))
    expected = functional.cross_entropy(
        padded_logits(captioner, visual, words[..., :-1]).flatten(0, -2),
        words[..., 1:].flatten(),
        ignore_index=PADDING_ID,
        label_smoothing=smoothing,
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    parameters = list(captioner.parameters())
    for own, theirs in zip(
        torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters), strict=True
    ):
        torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-6)


def test_weights_count_the_predicted_words_and_costs_the_prefixes_of_each_image():
    objective = CrossEntropy(TrainingCaptions(CAPTIONS, Vocabulary(WORDS), 6, 6), PhaseConfig("xe", 1, 1e-3))
    images = np.array([2, 0, 1])
    assert objective.weights(images).tolist() == [6, 4 + 5 + 2, 4 + 4]
    # The begin token, and after it w4; w4 w5; w4 w5 w6; w4 w5 w7; w4 w5 w7 w8; w9.
    assert objective.costs(images).tolist() == [6, 7, 4]


def test_captions_count_by_their_weights():
    captioner, visual = tiny_captioner("smart"), tiny_visual(3, 6, seed=3)

    def objective(weights):
        given = None if weights is None else np.array(weights, np.float32)
        return CrossEntropy(TrainingCaptions(CAPTIONS, Vocabulary(WORDS), 6, 6, given), PhaseConfig("xe", 1, 1e-3))

    def loss(objective, images):
        chosen = torch.from_numpy(images)
        part = Visual(*(None if field is None else field[chosen] for field in visual))
        return objective(captioner, part, images, objective.targets(images)).loss

    weighted = objective([0.5, 2.0, 1.0])
    assert weighted.weights(np.arange(3)).tolist() == [11 * 0.5, 8 * 2.0, 6]
    alone = [loss(objective(None), np.array([image])) for image in range(3)]
    shares = weighted.weights(np.arange(3)) / weighted.weights(np.arange(3)).sum()
    expected = sum(share * image_loss for share, image_loss in zip(shares, alone, strict=True))
    torch.testing.assert_close(loss(weighted, np.arange(3)), expected, rtol=1e-5, atol=1e-6, check_dtype=False)
