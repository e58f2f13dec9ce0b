"""Beam search in torch compared with a plain implementation that shares no code with it."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.plain_beam_search import assert_same_beams, plain_beam_search
from tests.tiny_model import padded_logits, tiny_smart
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual

FORBIDDEN = SearchSettings().forbidden


@given(seed=st.integers(0, 10_000), beam_size=st.integers(1, 6), batch=st.integers(1, 3), max_words=st.integers(1, 9))
@settings(max_examples=25)
def test_all_beams_equal_those_of_a_plain_beam_search(seed: int, beam_size: int, batch: int, max_words: int) -> None:
    model = tiny_smart(seed=seed % 5)
    torch.manual_seed(seed)
    tokens = torch.randn(batch, 6, 24) * 2
    mask = torch.arange(6)[None] < torch.randint(1, 7, (batch, 1))
    with torch.inference_mode():
        found = beam_search(model, Visual(tokens, mask), SearchSettings(beam_size, max_words, stop="all"))
    for image in range(batch):
        expected = plain_beam_search(
            model, Visual(tokens[image : image + 1], mask[image : image + 1]), beam_size, max_words
        )
        assert_same_beams(found, image, expected)


@pytest.mark.parametrize("seed", range(10))
def test_early_exit_does_not_change_the_best_caption(seed: int) -> None:
    model = tiny_smart()
    torch.manual_seed(seed)
    tokens = torch.randn(4, 6, 24) * 2
    with torch.inference_mode():
        early = beam_search(model, Visual(tokens), SearchSettings(max_words=12))
        late = beam_search(model, Visual(tokens), SearchSettings(max_words=12, stop="all"))
    steps = early.words.shape[2]
    assert torch.equal(early.words[:, 0], late.words[:, 0, :steps])
    assert not late.words[:, 0, steps:].any()
    torch.testing.assert_close(early.scores[:, 0], late.scores[:, 0])


def test_forbidden_words_are_never_chosen() -> None:
    with torch.inference_mode():
        found = beam_search(
            tiny_smart(), Visual(torch.randn(8, 6, 24)), SearchSettings(max_words=10, forbidden=(0, 1, 3, 16, 55))
        )
    ended = found.words.cumsum(-1) == found.words  # before the end token, padding is not a choice
    assert not torch.isin(found.words[~ended], torch.tensor([1, 3, 16, 55])).any()


def test_more_words_than_the_captioner_can_decode_are_refused() -> None:
    with pytest.raises(ValueError, match="max_words is 13, but the captioner can decode 12 words"):
        beam_search(tiny_smart(max_length=12), Visual(torch.randn(1, 6, 24)), SearchSettings(max_words=13))


def test_greedy_decoding_that_goes_on_after_the_end_chooses_the_likeliest_word_at_each_step() -> None:
    model = tiny_smart()
    with torch.no_grad():
        model.word_projection.weight[Vocabulary.end_id] *= 3  # the end comes early in some captions
    torch.manual_seed(0)
    visual = Visual(torch.randn(6, 6, 24) * 2)
    words = torch.full((6, 1, 1), Vocabulary.begin_id)
    with torch.inference_mode():
        for _ in range(8):
            logits = padded_logits(model, visual, words)[:, :, -1:]
            words = torch.cat([words, logits.index_fill(3, torch.tensor(FORBIDDEN), -1e9).argmax(dim=3)], dim=2)
        found = beam_search(model, visual, SearchSettings(1, 8, FORBIDDEN, stop="never", after_end="words"))
    assert torch.equal(found.words, words[:, :, 1:])
    ended = found.words[:, 0] == Vocabulary.end_id
    assert ended[:, :-1].any()
    assert (found.log_probabilities < 0).all()


@pytest.mark.parametrize(("beam_size", "stop"), [(2, "never"), (1, "best")])
def test_a_search_that_goes_on_after_the_end_is_refused_where_it_would_stop(beam_size: int, stop: Any) -> None:
    with pytest.raises(ValueError, match="after_end words needs beam_size 1, stop never"):
        SearchSettings(beam_size, stop=stop, after_end="words")


def test_a_penalty_of_the_end_token_is_that_of_a_captioner_whose_logit_of_it_is_lower() -> None:
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
