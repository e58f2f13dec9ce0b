"""The likeliest words computed once more: that they are, and what it is worth where a projection is rough."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from export.captioner_graph import loop_form
from export.passes.int8 import layers_of, to_int8
from export.passes.shortlist import WORDS_A_BEAM, projection_of, with_shortlist
from export.trace import TracedCaptioner
from tests.export.graphs import MAX_WORDS, ragged, run, session_of
from training.models.smart import Smart


def rounded_projection(step: onnx.ModelProto, digits: int) -> onnx.ModelProto:
    """The step with the weights of the projection itself, and of nothing else, rounded."""
    rough = onnx.ModelProto()
    rough.CopyFrom(step)
    (projection,) = (node for node in rough.graph.node if node.name == projection_of(step))
    (weight,) = (tensor for tensor in rough.graph.initializer if tensor.name == projection.input[1])
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).round(digits), weight.name))
    return rough


def test_with_an_exact_projection_nothing_changes(traced: TracedCaptioner) -> None:
    listed = replace(traced, step=with_shortlist(traced.step))
    visual = ragged(3, 1)
    expected = run(session_of(loop_form(traced, MAX_WORDS)), visual)
    found = run(session_of(loop_form(listed, MAX_WORDS)), visual)
    np.testing.assert_array_equal(found["words"], expected["words"])
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-4)


def test_a_rough_projection_changes_fewer_captions_with_a_shortlist(traced: TracedCaptioner) -> None:
    def changed(step: onnx.ModelProto) -> tuple[int, float]:
        session = session_of(loop_form(replace(traced, step=step), MAX_WORDS, early_exit=False))
        captions, difference = 0, 0.0
        for seed in range(12):
            visual = ragged(4, seed)
            expected, found = run(exact, visual), run(session, visual)
            captions += int((expected["words"][:, 0] != found["words"][:, 0]).any(axis=-1).sum())
            difference = max(difference, float(np.abs(expected["scores"][:, 0] - found["scores"][:, 0]).max()))
        return captions, difference

    exact = session_of(loop_form(traced, MAX_WORDS, early_exit=False))
    without, rounding = changed(rounded_projection(traced.step, 2))
    listed, rest = changed(rounded_projection(with_shortlist(traced.step), 2))
    assert without > 3  # of 48 captions of a tiny model whose words are near ties
    assert listed < without / 3
    assert rest < rounding


def test_the_shortlist_is_two_words_a_beam_or_the_whole_vocabulary(traced_model: tuple[Smart, TracedCaptioner]) -> None:
    model, traced = traced_model
    counts = [
        numpy_helper.to_array(tensor).tolist()
        for tensor in with_shortlist(traced.step).graph.initializer
        if tensor.name.endswith("/count")
    ]
    assert counts == [[min(WORDS_A_BEAM * traced.beam_size, model.config.vocabulary_size)]]


def test_the_projection_in_8_bits_has_a_shortlist_and_other_layers_need_none(traced: TracedCaptioner) -> None:
    def shortlists(layers: list[str]) -> int:
        step = to_int8(traced, layers, "u8").step
        return sum(node.op_type == "ScatterElements" for node in step.graph.node)

    *others, projection = layers_of(traced)
    assert shortlists(others) == 0
    assert shortlists([projection]) == 1


def test_a_graph_that_chooses_nothing_is_refused(traced: TracedCaptioner) -> None:
    with pytest.raises(ValueError, match="TopK"):
        with_shortlist(traced.start)
