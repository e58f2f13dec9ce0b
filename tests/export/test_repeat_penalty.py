"""Captioner graphs whose search has a penalty of repeated words, against a plain search; exported bundles with it."""

import functools

import pytest
import torch

from export.captioner_graph import loop_form, static_form
from export.trace import TracedCaptioner, trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.export.graphs import (
    MAX_WORDS,
    assert_equal_to_plain_search,
    ragged,
    random_guides,
    run,
    session_of,
    word_biases,
)
from tests.tiny_model import tiny_smart
from training.models.smart import Smart

BEAMS, WORDS, TOKENS = 3, 60, 9
PENALTY = 2.5
SAME_WORDS = torch.tensor([0] * 8 + [1 + word // 2 for word in range(WORDS - 8)], dtype=torch.int32)
REPEATS = PENALTY, SAME_WORDS


@functools.cache
def traced_with_penalty(*, guided: bool) -> tuple[Smart, TracedCaptioner]:
    model = tiny_smart(vocabulary_size=WORDS)
    return model, trace_captioner(model, Search(BEAMS, repeat_penalty=PENALTY), guided=guided, same_words=SAME_WORDS)


@pytest.mark.parametrize("guided", [pytest.param(False, marks=pytest.mark.long), True])
def test_all_beams_of_both_forms_equal_a_plain_searchs(guided: bool) -> None:
    model, traced = traced_with_penalty(guided=guided)
    for seed in range(4):
        visual, guides = ragged(3, seed), random_guides(3, WORDS, seed) if guided else None
        biases = None if guides is None else word_biases(guides, WORDS)
        loop = run(session_of(loop_form(traced, MAX_WORDS, early_exit=False)), visual, biases, every_beam=True)
        static = run(session_of(static_form(traced, MAX_WORDS, tokens=TOKENS, batch=3)), visual, biases)
        for found in (loop, static):
            assert_equal_to_plain_search(model, found, visual, BEAMS, guides, REPEATS)


@pytest.mark.long
def test_the_best_caption_is_the_same_where_the_loop_ends_early() -> None:
    model, traced = traced_with_penalty(guided=False)
    loop = session_of(loop_form(traced, MAX_WORDS))
    for seed in range(3):
        visual = ragged(1, seed)
        assert_equal_to_plain_search(model, run(loop, visual), visual, 1, repeats=REPEATS)
