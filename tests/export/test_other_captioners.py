"""Captioners that share nothing with a registered family but the contract, through both forms and all precisions."""

from collections import Counter

import numpy as np
import pytest
import torch

from export.captioner_graph import loop_form, static_form
from export.contract_shapes import measure
from export.passes.int8 import layers_of, to_int8
from export.torch_to_onnx import SLOTS, Size
from export.trace import TracedCaptioner, trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.export.graphs import MAX_WORDS, assert_equal_to_plain_search, run, session_of
from tests.export.other_captioners import AdditiveLstm, LstmState, PlacedLstm, TwoAxes, tiny_other
from tests.tiny_model import tiny_visual
from training.models.captioner import Captioner, Rows, Slots, Step

BEAMS = 3
Traced = tuple[Captioner, TracedCaptioner]


@pytest.fixture(scope="module", params=[PlacedLstm, TwoAxes])
def other(request):
    captioner = tiny_other(request.param)
    return captioner, trace_captioner(captioner, Search(BEAMS))


@pytest.fixture(scope="module")
def lstm():
    captioner = tiny_other(AdditiveLstm)
    return captioner, trace_captioner(captioner, Search(BEAMS))


@pytest.mark.parametrize("batch", [1, 4])
def test_both_forms_give_the_captions_of_a_plain_search(other, batch):
    captioner, traced = other
    visual = tiny_visual(batch, 9, seed=batch, ragged=True)
    found = run(session_of(loop_form(traced, MAX_WORDS)), visual)
    assert_equal_to_plain_search(captioner, found, visual, beams=1)
    static = session_of(static_form(traced, MAX_WORDS, tokens=9, batch=batch))
    assert_equal_to_plain_search(captioner, run(static, visual), visual, beams=BEAMS)


def test_the_graph_takes_the_inputs_that_the_captioner_needs(other):
    captioner, traced = other
    places = ["token_boxes"] if captioner.needs_boxes else []
    for graph in (loop_form(traced, 4), static_form(traced, 4, tokens=9)):
        assert [value.name for value in graph.graph.input] == ["tokens", "token_mask", *places]
    assert list(traced.inputs) == ["tokens", "token_mask", *places]


def test_the_layers_of_an_lstm_can_be_put_in_8_bits(lstm):
    _, traced = lstm
    layers = layers_of(traced)
    assert {"56x128", "32x30"} <= {name.split()[1] for name in layers}  # gates of the input, words
    quantised = to_int8(traced, layers)
    kinds = Counter(node.op_type for piece in (quantised.start, quantised.step) for node in piece.graph.node)
    assert kinds["MatMulInteger"] == len(layers)
    visual = tiny_visual(4, 9, seed=0)
    expected, found = (
        run(session_of(loop_form(variant, MAX_WORDS, early_exit=False)), visual) for variant in (traced, quantised)
    )
    first, ours = expected["log_probabilities"][:, 0, 0], found["log_probabilities"][:, 0, 0]
    np.testing.assert_allclose(ours, first, atol=0.3)


def test_sizes_are_measured_and_not_assumed():
    specs = measure(tiny_other(TwoAxes), BEAMS).specs
    assert specs["state_keys"].shape == (Size("batch"), 32, Size(SLOTS))
    assert specs["state_values"].shape == (Size("batch"), Size(SLOTS), 32)
    assert specs["encoded_0"].shape == (Size("batch"), Size("tokens"), 32)
    assert measure(tiny_other(AdditiveLstm), BEAMS).specs["state_hidden"].shape == (Size("batch"), BEAMS, 32)


class Broken(AdditiveLstm):
    """Changes what a step returns."""

    def broken(self, state):
        raise NotImplementedError

    def decode(self, *inputs, **options):
        logits, attention, state = super().decode(*inputs, **options)
        return Step(logits, attention, self.broken(state))


class GrowingRows(Broken):
    def broken(self, state):
        return state._replace(hidden=Rows(torch.cat([state.hidden.values, state.hidden.values], dim=2)))

    def decode(self, words, position, past, state, encoded, **options):
        state = state._replace(hidden=Rows(state.hidden.values[:, :, :32]))
        return super().decode(words, position, past, state, encoded, **options)


class FixedSlots(Broken):
    def initial_state(self, encoded, sequences):
        state = super().initial_state(encoded, sequences)
        return state._replace(cell=Slots(state.cell.values))

    def decode(self, words, position, past, state, encoded, **options):
        return super().decode(words, position, past, state._replace(cell=Rows(state.cell.values)), encoded, **options)

    def broken(self, state):
        return state._replace(cell=Slots(state.cell.values))


class OtherTree(Broken):
    def broken(self, state):
        return tuple(state)

    def decode(self, words, position, past, state, encoded, **options):
        return super().decode(words, position, past, LstmState(*state), encoded, **options)


class NoTensor(AdditiveLstm):
    def encode(self, visual):
        return {**super().encode(visual), "count": 3}


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (GrowingRows, r"state_hidden is \(3, 3, 32\) torch.float32 before the first word and \(3, 3, 64\)"),
        (FixedSlots, "state_cell, a leaf of Slots, does not grow by one slot a word"),
        (OtherTree, "the tree of state_hidden, state_cell has another structure"),
        (NoTensor, "encoded_count is of type int, not a tensor"),
    ],
)
def test_what_breaks_the_contract_is_named(family, sentence):
    with pytest.raises(ValueError, match=sentence):
        measure(tiny_other(family), BEAMS)
