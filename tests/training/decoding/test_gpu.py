"""Beam search on an NVIDIA GPU equals that on the CPU."""

import copy

import pytest
import torch

from tests.tiny_model import tiny_captioner, tiny_visual
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
