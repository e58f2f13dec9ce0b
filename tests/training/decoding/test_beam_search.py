"""The longest caption and the penalty of the end token; models/test_conformance.py compares all beams."""

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_smart
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual


def test_more_words_than_the_captioner_can_decode_are_refused():
    with pytest.raises(ValueError, match="max_words is 13, but the captioner can decode 12 words"):
        beam_search(tiny_smart(max_length=12), Visual(torch.randn(1, 6, 24)), SearchSettings(max_words=13))


def test_a_penalty_of_the_end_token_is_that_of_a_captioner_whose_logit_of_it_is_lower():
    plain, lower = tiny_smart(output_bias=True), tiny_smart(output_bias=True)
    lower.load_state_dict(plain.state_dict())
    with torch.no_grad():
        lower.word_projection.bias[Vocabulary.end_id] -= 2
    torch.manual_seed(0)
    visual = Visual(torch.randn(6, 6, 24) * 2)
    with torch.inference_mode():
        found = beam_search(plain, visual, SearchSettings(3, 10, stop="all", end_penalty=2.0))
        expected = beam_search(lower, visual, SearchSettings(3, 10, stop="all"))
        without = beam_search(plain, visual, SearchSettings(3, 10, stop="all"))
    assert torch.equal(found.words, expected.words)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities)
    assert (found.words > 0).sum() > (without.words > 0).sum(), "captions are longer"
