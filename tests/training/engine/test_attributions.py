"""Integrated Gradients of words."""

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_captioner, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.engine.attributions import attribute_words


@pytest.mark.parametrize("family", ["object_relation", "up_down"])
def test_attributions_of_each_word_sum_to_its_change_of_log_probability(family):
    captioner, visual = tiny_captioner(family), tiny_visual(1, 6, seed=0)
    search = SearchSettings(2, 4, forbidden=(Vocabulary.padding_id, Vocabulary.begin_id), end_penalty=1.5)
    with torch.no_grad():
        best = beam_search(captioner, visual, search)
    words = best.words[0, 0][best.words[0, 0] != Vocabulary.padding_id]
    nothing = captioner_log_probabilities(captioner, visual._replace(tokens=torch.zeros_like(visual.tokens)), words)
    change = best.log_probabilities[0, 0, : len(words)] - nothing
    found = attribute_words(captioner, visual, words, search)
    torch.testing.assert_close(found.change, change, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.channels.sum(dim=(1, 2)), change, rtol=0.01, atol=0.01)
    assert found.error <= 0.01


def captioner_log_probabilities(captioner, visual, words):
    """Log probability of each word of a caption among the words that the search may choose."""
    said = torch.cat([torch.tensor([Vocabulary.begin_id]), words[:-1]])
    with torch.no_grad():
        logits = captioner.decode_captions(said[None, None], captioner.encode(visual))[0, 0]
    logits[:, Vocabulary.end_id] -= 1.5
    allowed = [word for word in range(logits.shape[1]) if word not in (Vocabulary.padding_id, Vocabulary.begin_id)]
    return logits[torch.arange(len(words)), words] - logits[:, allowed].logsumexp(dim=1)
