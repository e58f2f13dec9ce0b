"""Captioner graphs whose search is guided, against torch's search and a plain one."""

import numpy as np
import onnxruntime
import pytest
import torch

from export.captioner_graph import loop_form, static_form
from export.passes.float16 import to_float16
from export.tensorrt import unsupported_by_tensorrt
from export.trace import TracedCaptioner, trace_captioner
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
from training.decoding.beam_search import SearchSettings, WordGuide, beam_search
from training.models.smart import Smart

BEAMS, WORDS, TOKENS = 4, 60, 9
Session = onnxruntime.InferenceSession


@pytest.fixture(scope="module")
def model() -> Smart:
    model = tiny_smart(vocabulary_size=WORDS)
    with torch.no_grad():
        model.word_projection.weight[Vocabulary.end_id] *= 2.5  # beams end at different lengths
    return model


@pytest.fixture(scope="module")
def guided(model: Smart) -> TracedCaptioner:
    return trace_captioner(model, Search(BEAMS), guided=True)


@pytest.fixture(scope="module")
def loop(guided: TracedCaptioner) -> Session:
    return session_of(loop_form(guided, MAX_WORDS))


@pytest.fixture(scope="module")
def static(guided: TracedCaptioner) -> Session:
    return session_of(static_form(guided, MAX_WORDS, tokens=TOKENS, batch=3))


@pytest.mark.parametrize("seed", range(4))
def test_all_beams_of_both_forms_equal_a_plain_guided_searchs(
    model: Smart, static: Session, loop: Session, seed: int
) -> None:
    visual, guides = ragged(3, seed), random_guides(3, WORDS, seed)
    biases = word_biases(guides, WORDS)
    for found in (run(loop, visual, biases, every_beam=True), run(static, visual, biases)):
        assert_equal_to_plain_search(model, found, visual, BEAMS, guides)


@pytest.mark.parametrize("every_beam", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_loop_form_equals_torchs_guided_search(model: Smart, loop: Session, seed: int, every_beam: bool) -> None:
    visual, biases = ragged(3, seed), word_biases(random_guides(3, WORDS, seed), WORDS)
    settings = SearchSettings(BEAMS, MAX_WORDS, stop="all" if every_beam else "best")
    guide = WordGuide(torch.from_numpy(biases.bias), torch.from_numpy(biases.groups))
    with torch.inference_mode():
        expected = beam_search(model, visual, settings, guide)
    found = run(loop, visual, biases, every_beam=every_beam)
    steps = min(found["words"].shape[2], expected.words.shape[2])
    beams = BEAMS if every_beam else 1
    np.testing.assert_array_equal(found["words"][:, :beams, :steps], expected.words[:, :beams, :steps])
    np.testing.assert_allclose(found["scores"][:, :beams], expected.scores[:, :beams], atol=1e-4)


@pytest.mark.parametrize("every_beam", [True, False])
def test_a_guide_without_biases_changes_nothing(model: Smart, loop: Session, every_beam: bool) -> None:
    visual = ragged(4, 1)
    found = run(loop, visual, WordBiases.none(4, WORDS), every_beam=every_beam)
    assert_equal_to_plain_search(model, found, visual, BEAMS if every_beam else 1)


def test_a_bias_changes_captions_and_not_the_probabilities_that_are_reported(model: Smart, loop: Session) -> None:
    visual = ragged(1, 1)
    plain = run(loop, visual, WordBiases.none(1, WORDS))
    word = next(word for word in range(4, WORDS) if word not in plain["words"])
    found = run(loop, visual, word_biases([{word: (50.0, 1)}], WORDS))
    best = found["words"][0, 0].tolist()
    assert best.count(word) == 1  # the bias ends with the first word of the group
    assert found["log_probabilities"].max() <= 0
    assert found["scores"][0, 0] < plain["scores"][0, 0]


def test_every_beam_ends_where_that_is_asked_for_and_for_that_image_alone(loop: Session) -> None:
    steps = {
        every_beam: [
            run(loop, ragged(1, seed), WordBiases.none(1, WORDS), every_beam=every_beam)["words"].shape[2]
            for seed in range(12)
        ]
        for every_beam in (False, True)
    }
    assert all(late >= early for early, late in zip(steps[False], steps[True], strict=True))
    assert sum(steps[True]) > sum(steps[False])


def test_the_static_form_lacks_the_input_that_ends_the_loop(guided: TracedCaptioner) -> None:
    loop, static = loop_form(guided, MAX_WORDS), static_form(guided, MAX_WORDS, tokens=TOKENS)
    names = ["tokens", "token_mask", "word_bias", "word_groups", "every_beam"]
    assert [value.name for value in loop.graph.input] == names == list(guided.inputs)
    assert [value.name for value in static.graph.input] == names[:-1]
    assert unsupported_by_tensorrt(static) == []


def test_float16_gives_the_same_guided_captions(guided: TracedCaptioner, loop: Session) -> None:
    halved = to_float16(guided)
    for seed in range(3):
        visual, biases = ragged(1, seed), word_biases(random_guides(1, WORDS, seed), WORDS)
        expected = run(loop, visual, biases)
        for graph in (loop_form(halved, MAX_WORDS), static_form(halved, MAX_WORDS, TOKENS)):
            found = run(session_of(graph), visual, biases)
            steps = min(found["words"].shape[2], expected["words"].shape[2])
            np.testing.assert_array_equal(found["words"][:, 0, :steps], expected["words"][:, 0, :steps])
