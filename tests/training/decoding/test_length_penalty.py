"""Length penalty, shortest caption and hypotheses that end apart, against all captions that there are."""

import itertools
from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.captioning.search import Finished
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import padded_logits, tiny_smart
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual

WORDS, LONGEST = 7, 4
"""Size of the vocabulary, whose padding and begin tokens are never chosen, and words of the longest caption."""


def every_caption(model, visual, min_words):
    """The log probability of each caption of one image that may be said."""
    others = range(3, WORDS)
    captions = [
        (*words, *([Vocabulary.end_id] if length < LONGEST else []))
        for length in range(min_words - 1, LONGEST + 1)
        for words in itertools.product(others, repeat=length)
    ]
    captions += [(*words, Vocabulary.end_id) for words in itertools.product(others, repeat=LONGEST - 1)]
    given = torch.tensor([[Vocabulary.begin_id, *words, *[0] * (LONGEST - len(words))][:LONGEST] for words in captions])
    logits = padded_logits(model, visual, given[None])[0]
    logits[..., : Vocabulary.end_id] = -torch.inf
    chosen = logits.log_softmax(-1)
    return {
        words: sum(chosen[row, place, word].item() for place, word in enumerate(words))
        for row, words in enumerate(captions)
    }


@pytest.mark.parametrize("finished", ["in_beams", "apart"])
@given(seed=st.integers(0, 10_000), min_words=st.integers(1, LONGEST), length_penalty=st.sampled_from([0, 0.7, 1, -1]))
@settings(max_examples=8)
def test_a_search_with_a_beam_for_every_caption_finds_the_best(finished, seed, min_words, length_penalty):
    length_penalty = length_penalty if finished == "apart" else 0.0
    model = tiny_smart(vocabulary_size=WORDS, seed=seed % 5)
    visual = Visual(torch.randn(1, 6, 24, generator=torch.Generator().manual_seed(seed)) * 2)
    wanted = SearchSettings(500, LONGEST, (0, 1), min_words, length_penalty, finished, stop="all", attention=False)
    with torch.inference_mode():
        captions = every_caption(model, visual, min_words)
        found = beam_search(model, visual, wanted)
    ranks = {words: score / len(words) ** length_penalty for words, score in captions.items()}
    best = max(ranks, key=ranks.__getitem__)
    words = tuple(found.words[0, 0].tolist())
    assert words == best + (0,) * (LONGEST - len(best))
    assert found.scores[0, 0].item() == pytest.approx(captions[best], abs=1e-4)


@given(seed=st.integers(0, 10_000), beam_size=st.integers(1, 4), min_words=st.integers(1, 6))
@settings(max_examples=8)
def test_the_best_caption_is_the_same_where_the_search_ends_with_it(seed, beam_size, min_words):
    model = tiny_smart(seed=seed % 5)
    visual = Visual(torch.randn(6, 6, 24, generator=torch.Generator().manual_seed(seed)) * 2)
    for finished in get_args(Finished):
        wanted = SearchSettings(beam_size, 10, min_words=min_words, finished=finished)
        with torch.inference_mode():
            early, late = (beam_search(model, visual, replace(wanted, stop=stop)) for stop in ("best", "all"))
        length = early.words.shape[2]
        assert torch.equal(early.words[:, 0], late.words[:, 0, :length])
        assert not late.words[:, 0, length:].any()
        assert ((late.words[:, 0] != 0).sum(dim=1) >= min_words).all()
