"""Beam search and gradients on an NVIDIA GPU equal those on the CPU."""

import copy

import pytest
import torch

from tests.tiny_model import padded_logits, tiny_captioner, tiny_captions, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.models import FAMILIES

pytestmark = pytest.mark.needs_gpu


@pytest.mark.parametrize("family", FAMILIES)
def test_beams_are_those_of_the_cpu(family):
    captioner, visual = tiny_captioner(family).eval(), tiny_visual(4, 6, seed=1)
    on_gpu = type(visual)(*(part if part is None else part.cuda() for part in visual))
    with torch.inference_mode():
        expected = beam_search(captioner, visual, SearchSettings(max_words=8))
        found = beam_search(copy.deepcopy(captioner).cuda(), on_gpu, SearchSettings(max_words=8))
    assert torch.equal(found.words[:, 0].cpu(), expected.words[:, 0])
    torch.testing.assert_close(found.scores[:, 0].cpu(), expected.scores[:, 0], atol=1e-3, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_teacher_forcing_gives_the_gradients_of_the_cpu(family):
    captioner, visual = tiny_captioner(family).eval(), tiny_visual(4, 6, seed=1)
    words = tiny_captions(4, 2, seed=1)
    gradients = []
    for device in ("cpu", "cuda"):
        model = copy.deepcopy(captioner).to(device)
        given = type(visual)(*(part if part is None else part.to(device) for part in visual))
        padded_logits(model, given, words.to(device)).logsumexp(-1).mean().backward()
        gradients.append({name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], expected, atol=1e-3, rtol=1e-3)
