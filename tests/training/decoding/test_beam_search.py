"""Beam search in torch against a plain one that shares no code with it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plain_beam_search import plain_beam_search
from tests.tiny_model import tiny_smart
from training.decoding.beam_search import beam_search


@given(seed=st.integers(0, 10_000), beam_size=st.integers(1, 6), batch=st.integers(1, 3), max_words=st.integers(1, 9))
@settings(max_examples=25)
def test_all_beams_equal_those_of_a_plain_beam_search(seed: int, beam_size: int, batch: int, max_words: int) -> None:
    model = tiny_smart(seed=seed % 5)
    torch.manual_seed(seed)
    tokens = torch.randn(batch, 6, 24) * 2
    mask = torch.arange(6)[None] < torch.randint(1, 7, (batch, 1))
    with torch.inference_mode():
        found = beam_search(model, tokens, mask, beam_size=beam_size, max_words=max_words, early_exit=False)
    for image in range(batch):
        expected = plain_beam_search(model, tokens[image], mask[image], beam_size, max_words)
        for beam, reference in enumerate(expected):
            assert found.words[image, beam, : len(reference.words)].tolist() == reference.words
            assert found.scores[image, beam].item() == pytest.approx(reference.score, abs=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_early_exit_changes_no_best_caption(seed: int) -> None:
    model = tiny_smart()
    torch.manual_seed(seed)
    tokens = torch.randn(4, 6, 24) * 2
    with torch.inference_mode():
        early = beam_search(model, tokens, max_words=12)
        late = beam_search(model, tokens, max_words=12, early_exit=False)
    steps = early.words.shape[2]
    assert torch.equal(early.words[:, 0], late.words[:, 0, :steps])
    assert not late.words[:, 0, steps:].any()
    torch.testing.assert_close(early.scores[:, 0], late.scores[:, 0])


def test_forbidden_words_are_never_chosen() -> None:
    with torch.inference_mode():
        found = beam_search(tiny_smart(), torch.randn(8, 6, 24), max_words=10, forbidden=(0, 1, 3, 16, 55))
    ended = found.words.cumsum(-1) == found.words  # before the end token, padding is not a choice
    assert not torch.isin(found.words[~ended], torch.tensor([1, 3, 16, 55])).any()
