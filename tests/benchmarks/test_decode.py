"""The decoders of the benchmark make the same captions as ours."""

import pytest
import torch

from benchmarks.torch_decoders import PublishedStyle, ReorderedCache, search_to_the_end
from tests.tiny_model import tiny_smart
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual

MAX_WORDS = 12


def ragged(seed, batch=3):
    torch.manual_seed(seed)
    tokens, mask = torch.randn(batch, 9, 24) * 2, torch.arange(9)[None] < torch.randint(1, 10, (batch, 1))
    return Visual(tokens, mask, torch.rand(batch, 9, 2, 2).sort(dim=2).values.flatten(2))


@pytest.mark.parametrize("decoder", [PublishedStyle, ReorderedCache])
@pytest.mark.parametrize("beam_size", [1, 5])
def test_both_torch_decoders_find_the_beams_of_our_search(decoder, beam_size):
    model = tiny_smart()
    visual = ragged(beam_size)
    found = search_to_the_end(decoder(model), visual, beam_size, MAX_WORDS)
    with torch.inference_mode():
        expected = beam_search(model, visual, SearchSettings(beam_size, MAX_WORDS, stop="all"))
    assert torch.equal(found.words, expected.words)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.attention.sum(-1), torch.ones_like(found.attention[..., 0]), atol=1e-5, rtol=0)
