"""Both forms of the captioner graph against a plain torch beam search that shares no code with them."""

import numpy as np
import onnx
import onnxruntime
import pytest

from export.captioner_graph import loop_form, static_form
from export.passes.int8 import layers_of
from tests.export.graphs import MAX_WORDS, assert_equal_to_plain_search, ragged, run, session_of
from training.models.smart import Smart

Loop = tuple[Smart, onnxruntime.InferenceSession]


@pytest.fixture(scope="module")
def looping(traced_model):
    model, traced = traced_model
    return model, session_of(loop_form(traced, MAX_WORDS))


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_caption_equals_a_plain_beam_searchs(looping, batch, seed):
    model, session = looping
    visual = ragged(batch, seed)
    assert_equal_to_plain_search(model, run(session, visual), visual, beams=1)


def test_the_loop_ends_when_the_best_caption_has_ended(looping):
    _, session = looping
    lengths = {run(session, ragged(1, seed))["words"].shape[2] for seed in range(12)}
    assert len(lengths) > 1
    assert max(lengths) <= MAX_WORDS


def test_attention_is_a_distribution_over_the_tokens_that_are_there(looping):
    _, session = looping
    visual = ragged(7, 1)
    attention = run(session, visual)["attention"]
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-5)
    hidden = np.broadcast_to(~visual.mask.numpy()[:, None, None, :], attention.shape)
    assert attention[hidden].max() == 0


@pytest.mark.parametrize("batch", [1, 7])
def test_all_beams_of_the_static_form_equal_a_plain_beam_searchs(traced_model, batch):
    model, traced = traced_model
    session = session_of(static_form(traced, MAX_WORDS, tokens=9, batch=batch))
    lengths = []
    for seed in (0, 5, 8, 88) if batch == 1 else (0,):
        visual = ragged(batch, seed)
        found = run(session, visual)
        assert found["words"].shape == (batch, traced.beam_size, MAX_WORDS)
        assert found["attention"].shape == (batch, traced.beam_size, MAX_WORDS, 9)
        lengths += assert_equal_to_plain_search(model, found, visual, beams=traced.beam_size)
    if batch == 1:  # images are among them whose beams all end at different steps (of ten beams, seven)
        assert max(len(set(of_image)) for of_image in lengths) >= min(traced.beam_size, 7)


def test_without_early_exit_all_beams_of_the_loop_form_are_finished(traced_model):
    model, traced = traced_model
    session = session_of(loop_form(traced, MAX_WORDS, early_exit=False))
    visual = ragged(2, 3)
    found = run(session, visual)
    assert found["words"].shape[2] == MAX_WORDS
    assert_equal_to_plain_search(model, found, visual, beams=traced.beam_size)


def test_the_longest_caption_is_an_option(traced):
    found = run(session_of(static_form(traced, 4, tokens=9)), ragged(1, 0))
    assert found["words"].shape == (1, 3, 4)
    assert run(session_of(loop_form(traced, 4, early_exit=False)), ragged(1, 0))["words"].shape == (1, 3, 4)


@pytest.mark.parametrize("form", [lambda p: loop_form(p, MAX_WORDS), lambda p: static_form(p, MAX_WORDS, 9)])
def test_a_graph_uses_standard_operators_alone(traced, form):
    graph = form(traced)
    assert {opset.domain for opset in graph.opset_import} == {""}
    onnx.checker.check_model(graph, full_check=True)


def test_what_keeps_words_from_being_chosen_is_part_of_the_last_bias(traced):
    # of the tiny model: words that are never said are -1e9, and nothing is added to the 200 logits after that
    biases = [
        onnx.numpy_helper.to_array(tensor) for tensor in traced.step.graph.initializer if list(tensor.dims) == [200]
    ]
    assert len(biases) == 1
    assert biases[0].min() < -1e8


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
