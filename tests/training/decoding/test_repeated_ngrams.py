"""No n words twice in a caption, and lengths that count what a caption is forced to begin and end with."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import NoRepeatNGramLogitsProcessor

from export.captioner_graph import loop_form, static_form
from export.tensorrt import unsupported_by_tensorrt
from smart_caption_ros.captioning.search import Search
from tests.export.graphs import ragged, run, session_of
from tests.tiny_graphs import BEAMS, tiny_traced
from training.decoding.beam_search import EXCLUDED, SearchSettings, beam_search, nothing_said, repeated_ngrams

WORDS, LONGEST = 5, 8


@given(
    beams=st.lists(st.lists(st.integers(0, WORDS - 1), min_size=LONGEST, max_size=LONGEST), min_size=1, max_size=4),
    count=st.integers(0, LONGEST - 1),
    size=st.integers(1, 5),
    begin=st.lists(st.integers(0, WORDS - 1), max_size=2),
)
def test_the_excluded_words_are_those_of_transformers(beams, count, size, begin):
    search = Search(len(beams), LONGEST, no_repeat_ngram=size, forced_begin=tuple(begin))
    said = nothing_said(search, WORDS).expand(1, len(beams), -1)
    words = torch.tensor(beams)[:, :count]
    said = torch.cat([said, words[None]], dim=-1)[..., count:]
    before = torch.tensor([begin or [1]]).expand(len(beams), -1)
    scores = NoRepeatNGramLogitsProcessor(size)(torch.cat([before, words], dim=1), torch.zeros(len(beams), WORDS))
    assert torch.equal(repeated_ngrams(said, size, WORDS)[0] == EXCLUDED, scores == -torch.inf)


@pytest.mark.long
def test_both_forms_of_the_graph_find_the_captions_of_torch():
    search = Search(
        BEAMS, 10, length_penalty=1.0, finished="apart_until_k", end_penalty=5.0,
        no_repeat_ngram=2, forced_begin=(9,), forced_end=True,
    )  # fmt: skip
    captioner, traced = tiny_traced("smart", search)
    visual = ragged(3, 5)
    with torch.inference_mode():
        plain, expected = (
            beam_search(captioner, visual, SearchSettings(**{**asdict(search), **changed}, stop="all"))
            for changed in ({"no_repeat_ngram": 0}, {})
        )
    assert not torch.equal(plain.words, expected.words)
    for caption in expected.words.flatten(0, 1).tolist():
        pairs = [pair for pair in zip([9, *caption], caption, strict=False) if pair[1]]
        assert len(set(pairs)) == len(pairs)
    static = static_form(traced, 10, tokens=visual.tokens.shape[1], batch=3)
    assert not unsupported_by_tensorrt(static)
    for session in (session_of(loop_form(traced, 10, early_exit=False)), session_of(static)):
        found = run(session, visual)
        np.testing.assert_array_equal(found["words"], expected.words)
        np.testing.assert_allclose(found["scores"], expected.scores, atol=1e-4)
