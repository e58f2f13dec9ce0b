"""The published recipe computes what ours does, by other means."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.published_training import PublishedCiderD, published_search
from benchmarks.torch_decoders import PublishedStyle
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import tiny_captioner, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.evaluation.metrics.cider_d import CiderD
from training.models.smart import Smart
from training.objectives.self_critical import self_critical_loss

VOCABULARY = Vocabulary((*SPECIAL, *"abcdef"))
captions = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=8)  # g is an unknown word
corpora = st.lists(st.lists(captions, min_size=1, max_size=3), min_size=2, max_size=5)


@given(corpora, st.data())
def test_the_published_reward_is_ours_without_the_end_token(corpus: list[list[list[str]]], data: st.DataObject) -> None:
    words = np.full((2, 3, 9), Vocabulary.padding_id)
    for row in words.reshape(-1, 9):
        sampled = data.draw(st.lists(st.integers(len(SPECIAL), len(VOCABULARY) - 1), max_size=8))
        row[: len(sampled) + 1] = [*sampled, Vocabulary.end_id]
    images = np.array([0, len(corpus) - 1])
    ours = CiderD.from_words(corpus, VOCABULARY, end_token=False).score(images, words)
    np.testing.assert_allclose(PublishedCiderD(corpus, VOCABULARY).score(images, words), ours, atol=1e-6)


@pytest.mark.parametrize("beam_size", [2, 5])
def test_the_published_search_finds_our_captions_with_our_gradient(beam_size: int) -> None:
    ours, theirs = tiny_captioner("smart"), tiny_captioner("smart")
    assert isinstance(theirs, Smart)
    visual, max_words = tiny_visual(4, 6, seed=1, ragged=True), 8
    expected = beam_search(ours, visual, SearchSettings(beam_size, max_words, stop="all"))
    found = published_search(PublishedStyle(theirs, sorts=False), visual, beam_size, max_words)
    assert torch.equal(found.words, expected.words)
    assert (expected.words == Vocabulary.end_id).any(dim=-1).any()
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities)
    rewards = torch.rand(4, beam_size, generator=torch.Generator().manual_seed(0))
    self_critical_loss(expected.log_probabilities, rewards).backward()
    self_critical_loss(found.log_probabilities, rewards).backward()
    for (name, parameter), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert parameter.grad is not None, name
        assert other.grad is not None, name
        torch.testing.assert_close(other.grad, parameter.grad, atol=1e-6, rtol=1e-3)
