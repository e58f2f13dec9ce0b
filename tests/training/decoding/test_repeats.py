"""The penalty of repeated content words in torch's search, against a plain search."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.export.graphs import word_biases
from tests.plain_beam_search import assert_same_beams, plain_beam_search
from tests.tiny_model import tiny_smart
from training.decoding.beam_search import SearchSettings, WordGuide, beam_search
from training.decoding.pieces import PieceTables
from training.decoding.repeats import same_words
from training.models.captioner import Visual

SAME = {word: 1 + word // 3 for word in range(10, 60)}
"""Three words of the tiny model count as one; the first six may be repeated."""


SAME_WORDS = torch.tensor([SAME.get(word, 0) for word in range(60)], dtype=torch.int32)


@given(seed=st.integers(0, 10_000), beam_size=st.integers(1, 5), batch=st.integers(1, 3), penalty=st.floats(0.1, 20))
@settings(max_examples=20)
def test_all_beams_equal_those_of_a_plain_search(seed, beam_size, batch, penalty):
    model = tiny_smart(seed=seed % 5)
    torch.manual_seed(seed)
    tokens = torch.randn(batch, 6, 24) * 2
    wanted = SearchSettings(beam_size, 8, repeat_penalty=penalty, stop="all", same_words=SAME_WORDS)
    with torch.inference_mode():
        found = beam_search(model, Visual(tokens), wanted)
    for image in range(batch):
        expected = plain_beam_search(model, Visual(tokens[image : image + 1]), beam_size, 8, same=SAME, penalty=penalty)
        assert_same_beams(found, image, expected)


@given(seed=st.integers(0, 10_000), beam_size=st.integers(1, 4), penalty=st.floats(0.1, 20), guided=st.booleans())
@settings(max_examples=12)
def test_a_word_that_a_piece_continues_is_neither_guided_nor_a_repetition(seed, beam_size, penalty, guided):
    model = tiny_smart(seed=seed % 5)
    visual = Visual(torch.randn(1, 6, 24, generator=torch.Generator().manual_seed(seed)) * 2)
    continuing = range(30, 60)
    same = {word: number for word, number in SAME.items() if word not in continuing}
    guide = {word: (3.0 - 2 * (word % 3), 1 + word % 2) for word in range(8, 20)} if guided else {}
    ids, biases = torch.arange(60), word_biases([guide], 60)
    wanted = SearchSettings(
        beam_size, 8, repeat_penalty=penalty, stop="all", same_words=SAME_WORDS.where(ids < continuing.start, 0),
        pieces=PieceTables(ids >= continuing.start, torch.full((60, 1), -1)),
    )  # fmt: skip
    given = WordGuide(torch.from_numpy(biases.bias), torch.from_numpy(biases.groups)) if guided else None
    with torch.inference_mode():
        found = beam_search(model, visual, wanted, given)
    expected = plain_beam_search(
        model, visual, beam_size, 8, guide=guide, same=same, penalty=penalty, continues=continuing
    )
    assert_same_beams(found, 0, expected)


def test_words_of_one_stem_count_as_the_same_and_words_without_content_may_be_repeated():
    vocabulary = Vocabulary((*SPECIAL, "a", "couch", "couches", "next", "to", "sink", "bus"))
    groups = dict(zip(vocabulary.words, same_words(vocabulary).tolist(), strict=True))
    assert groups["couch"] == groups["couches"] > 0
    assert len({groups["couch"], groups["sink"], groups["bus"], 0}) == 4
    assert not any(groups[word] for word in (*SPECIAL, "a", "next", "to"))
