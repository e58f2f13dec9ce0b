"""Captioner graphs whose search is guided, against torch's search and a plain one."""

import onnxruntime
import pytest
import torch

from export.captioner_graph import loop_form, static_form
from export.tensorrt import unsupported_by_tensorrt
from export.trace import trace_captioner
from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
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

BEAMS, WORDS, TOKENS = 4, 60, 9
Session = onnxruntime.InferenceSession


@pytest.fixture(scope="module")
def model():
    model = tiny_smart(vocabulary_size=WORDS)
    with torch.no_grad():
        model.word_projection.weight[Vocabulary.end_id] *= 2.5  # beams end at different lengths
    return model


@pytest.fixture(scope="module")
def guided(model):
    return trace_captioner(model, Search(BEAMS), guided=True)


@pytest.fixture(scope="module")
def loop(guided):
    return session_of(loop_form(guided, MAX_WORDS))


@pytest.fixture(scope="module")
def static(guided):
    return session_of(static_form(guided, MAX_WORDS, tokens=TOKENS, batch=3))


@pytest.mark.parametrize("seed", range(4))
def test_all_beams_of_both_forms_equal_a_plain_guided_searchs(model, static, loop, seed):
    visual, guides = ragged(3, seed), random_guides(3, WORDS, seed)
    biases = word_biases(guides, WORDS)
    for found in (run(loop, visual, biases, every_beam=True), run(static, visual, biases)):
        assert_equal_to_plain_search(model, found, visual, BEAMS, guides)


def test_a_bias_changes_captions_and_not_the_probabilities_that_are_reported(model, loop):
    visual = ragged(1, 1)
    plain = run(loop, visual, WordBiases.none(1, WORDS))
    word = next(word for word in range(4, WORDS) if word not in plain["words"])
    found = run(loop, visual, word_biases([{word: (50.0, 1)}], WORDS))
    best = found["words"][0, 0].tolist()
    assert best.count(word) == 1  # the bias ends with the first word of the group
    assert found["log_probabilities"].max() <= 0
    assert found["scores"][0, 0] < plain["scores"][0, 0]


def test_the_static_form_lacks_the_input_that_ends_the_loop(guided):
    loop, static = loop_form(guided, MAX_WORDS), static_form(guided, MAX_WORDS, tokens=TOKENS)
    names = ["tokens", "token_mask", "word_bias", "word_groups", "every_beam"]
    assert [value.name for value in loop.graph.input] == names == list(guided.inputs)
    assert [value.name for value in static.graph.input] == names[:-1]
    assert unsupported_by_tensorrt(static) == []
