"""Both forms of the captioner graph find the beams of torch's search, whatever the search is told to do."""

from dataclasses import asdict, replace
from typing import NamedTuple

import onnx
import onnxruntime
import pytest
import torch

from export.captioner_graph import loop_form, static_form
from export.passes.int8 import layers_of
from export.tensorrt import unsupported_by_tensorrt
from export.trace import trace_captioner
from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.grounding import ObjectsGuide
from tests.export.graphs import MAX_WORDS, assert_same_beams, hypotheses, random_guides, session_of, word_biases
from tests.tiny_model import tiny_captioner, tiny_smart, tiny_visual
from training.decoding.beam_search import SearchSettings, WordGuide, beam_search
from training.decoding.pieces import PieceTables
from training.decoding.repeats import same_words

TOKENS = 9
PIECES = Vocabulary(
    (*SPECIAL, "book", "##shelf", "dog", "skate", "##board", "##rs", "a", "~~,", "##s", "table", "##ing"), "##", "~~"
)


class Case(NamedTuple):
    """A captioner and what its search is told."""

    captioner: torch.nn.Module
    search: Search
    guide: WordBiases | None = None
    """For three images."""
    vocabulary: Vocabulary | None = None
    """If its pieces are joined to words."""

    @property
    def tables(self):
        if self.vocabulary is None:
            return {}
        return {"same_words": same_words(self.vocabulary), "pieces": PieceTables.of(self.vocabulary)}


def ending_smart():
    """The beams of an image end at up to eight different steps."""
    model = tiny_smart(encoder_layers=1, decoder_layers=1)
    with torch.no_grad():
        model.word_embedding.weight *= 3
        model.word_projection.weight *= 3
        model.word_projection.weight[Vocabulary.end_id] *= 2.5
    return model


def guided():
    return Case(ending_smart(), Search(4, MAX_WORDS), word_biases(random_guides(3, 60, seed=0), 60))


def guided_over_pieces():
    scores = ClassScores({"book": 0.9, "skateboard": 0.8, "dog": 0.6}, complete=False)
    guide = WordBiases.join([ObjectsGuide(strength=6.0).word_biases(scores, PIECES)] * 3)
    search = Search(4, MAX_WORDS, repeat_penalty=2.0, end_penalty=1.0)
    return Case(tiny_smart(vocabulary_size=len(PIECES)), search, guide, PIECES)


def no_pair_twice():
    """As Florence-2's settings."""
    search = Search(
        4, MAX_WORDS, min_words=3, length_penalty=1.0, finished="apart_until_k", end_penalty=5.0, no_repeat_ngram=2,
        forced_begin=(9,), forced_end=True,
    )  # fmt: skip
    return Case(tiny_captioner("smart"), search)


CASES = {
    "ten beams, other ends": lambda: Case(ending_smart(), Search(10, MAX_WORDS, end_words=(6, 11))),
    "apart": lambda: Case(
        tiny_captioner("smart"), Search(4, MAX_WORDS, min_words=3, length_penalty=0.7, finished="apart")
    ),
    "no pair twice": no_pair_twice,
    "guided": guided,
    "guided over pieces, repeats cost": guided_over_pieces,
}


@pytest.fixture(
    scope="module", params=[name if name == "guided" else pytest.param(name, marks=pytest.mark.long) for name in CASES]
)
def case(request):
    case = CASES[request.param]()
    traced = trace_captioner(case.captioner, case.search, guided=case.guide is not None, **case.tables)
    return case, traced, SearchSettings(**asdict(case.search), **case.tables)


def test_both_forms_have_all_beams_of_torch(case):
    (captioner, _, biases, _), traced, settings = case
    visual = tiny_visual(3, TOKENS, seed=5, ragged=True)
    guide = biases and WordGuide(torch.from_numpy(biases.bias), torch.from_numpy(biases.groups))
    with torch.inference_mode():
        expected = beam_search(captioner, visual, replace(settings, stop="all"), guide)
    loop = loop_form(traced, MAX_WORDS, early_exit=guide is not None)  # a guided loop has an input for it
    static = static_form(traced, MAX_WORDS, tokens=TOKENS, batch=3)
    assert_same_beams(hypotheses(session_of(loop), visual, biases, every_beam=True), expected)
    assert_same_beams(hypotheses(session_of(static), visual, biases), expected)
    assert unsupported_by_tensorrt(static) == []
    assert [value.name for value in loop.graph.input] == list(traced.inputs)
    assert [value.name for value in static.graph.input] == [name for name in traced.inputs if name != "every_beam"]


@pytest.mark.long
@pytest.mark.parametrize("case", ["ten beams, other ends", "apart", "no pair twice"], indirect=True)
def test_the_loop_ends_with_the_best_caption(case):
    (captioner, *_), traced, settings = case
    session, steps = session_of(loop_form(traced, MAX_WORDS)), set()
    for seed in range(16, 22):
        visual = tiny_visual(1, 7, seed, ragged=True)
        with torch.inference_mode():
            expected, last = (beam_search(captioner, visual, replace(settings, stop=stop)) for stop in ("best", "all"))
        found = hypotheses(session, visual)
        assert_same_beams(found, expected)
        steps.add(found.words.shape[2])
        assert torch.equal(found.words[:, 0], last.words[:, 0, : found.words.shape[2]])
    assert len(steps) > 1


@pytest.mark.parametrize("form", [lambda p: loop_form(p, MAX_WORDS), lambda p: static_form(p, MAX_WORDS, TOKENS)])
def test_a_graph_uses_standard_operators_alone(traced, form):
    graph = form(traced)
    assert {opset.domain for opset in graph.opset_import} == {""}
    onnx.checker.check_model(graph, full_check=True)


def test_onnx_runtime_adds_biases_within_the_products_of_a_word(traced, tmp_path):
    optimised = tmp_path / "optimised.onnx"
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(optimised)
    options.log_severity_level = 3
    graph = loop_form(traced, MAX_WORDS).SerializeToString()
    onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    (loop,) = (node for node in onnx.load(optimised).graph.node if node.op_type == "Loop")
    (body,) = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    kinds = [node.op_type for node in body.node]
    layers = [name for name in layers_of(traced) if name.startswith("step/")]
    assert kinds.count("Gemm") + kinds.count("FusedGemm") == len(layers)
    assert len(body.node) < len(traced.step.graph.node)
