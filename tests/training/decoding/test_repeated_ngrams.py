"""No n words twice in a caption."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import NoRepeatNGramLogitsProcessor

from smart_caption_ros.captioning.search import Search
from training.decoding.beam_search import EXCLUDED, nothing_said, repeated_ngrams

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
