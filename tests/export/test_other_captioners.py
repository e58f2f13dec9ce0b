"""Captioners that keep the contract otherwise than the registered families do, and captioners that break it."""

import pytest
import torch
from torch import nn

from export.captioner_graph import loop_form, static_form
from export.contract_shapes import measure
from export.torch_to_onnx import SLOTS, Size
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.export.graphs import MAX_WORDS, assert_same_beams, hypotheses, session_of
from tests.tiny_model import TINY_SIZES, TOKEN_WIDTH, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Captioner, CaptionerConfig, Rows, Slots, Step, visible_slots
from training.models.up_down import UpDown, UpDownConfig

BEAMS, WIDTH = 3, 32


class TwoAxes(Captioner):
    """Self-attention whose slots are axis 2 of its keys (B, d, S) and axis 1 of its values (B, S, d)."""

    def __init__(self, config):
        super().__init__(config)
        self.word_embedding = nn.Embedding(config.vocabulary_size, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.image_key = nn.Linear(config.token_width, WIDTH)
        self.word_projection = nn.Linear(WIDTH, config.vocabulary_size)

    def encode(self, visual):
        return self.image_key(visual.tokens), visual.mask

    def initial_state(self, encoded, sequences):
        tokens = encoded[0]
        return {"keys": Slots(tokens[:, :0].transpose(1, 2)), "nothing": None, "values": Slots(tokens[:, :0])}

    def decode(self, words, position, past, state, encoded, *, attention=True):
        (_, group, length), (tokens, mask) = words.shape, encoded
        x = self.word_embedding(words).flatten(1, 2)  # (B, G * T, d)
        keys = torch.cat([state["keys"].values, self.key(x).transpose(1, 2)], dim=2)
        values = torch.cat([state["values"].values, self.value(x)], dim=1)
        visible = visible_slots(past, length)
        weights = (self.query(x) @ keys).masked_fill(~visible, -1e9).softmax(dim=-1)
        x = x + weights @ values
        scores = x @ tokens.transpose(1, 2)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], -1e9)
        over_tokens = scores.softmax(dim=-1)
        logits = self.word_projection(x + over_tokens @ tokens)
        return Step(
            logits.unflatten(1, (group, length)),
            over_tokens.unflatten(1, (group, length)),
            {"keys": Slots(keys), "nothing": None, "values": Slots(values)},
        )


@pytest.mark.long
def test_slots_may_be_any_axis_and_sizes_are_measured():
    torch.manual_seed(0)
    captioner = TwoAxes(CaptionerConfig(30, TOKEN_WIDTH)).eval()
    with torch.no_grad():
        captioner.word_embedding.weight *= 3
        captioner.word_projection.weight *= 8
        captioner.word_projection.weight[Vocabulary.end_id] *= 0.7
    specs = measure(captioner, BEAMS).specs
    assert specs["state_keys"].shape == (Size("batch"), 32, Size(SLOTS))
    assert specs["state_values"].shape == (Size("batch"), Size(SLOTS), 32)
    assert specs["encoded_0"].shape == (Size("batch"), Size("tokens"), 32)
    traced, visual = trace_captioner(captioner, Search(BEAMS)), tiny_visual(4, 9, seed=4, ragged=True)
    with torch.inference_mode():
        expected = beam_search(captioner, visual, SearchSettings(BEAMS, MAX_WORDS, stop="all"))
    for form in (loop_form(traced, MAX_WORDS, early_exit=False), static_form(traced, MAX_WORDS, tokens=9, batch=4)):
        assert_same_beams(hypotheses(session_of(form), visual), expected)


class GrowingRows(UpDown):
    def decode(self, words, position, past, state, encoded, *, attention=True):
        cut = state._replace(language_hidden=Rows(state.language_hidden.values[..., :24]))
        step = super().decode(words, position, past, cut, encoded)
        hidden = step.state.language_hidden.values
        return step._replace(state=step.state._replace(language_hidden=Rows(torch.cat([hidden, hidden], dim=2))))


class FixedSlots(UpDown):
    def initial_state(self, encoded, sequences):
        state = super().initial_state(encoded, sequences)
        return state._replace(attention_cell=Slots(state.attention_cell.values))

    def decode(self, words, position, past, state, encoded, *, attention=True):
        step = super().decode(words, position, past, state, encoded)
        return step._replace(state=step.state._replace(attention_cell=Slots(step.state.attention_cell.values)))


class OtherTree(UpDown):
    def decode(self, words, position, past, state, encoded, *, attention=True):
        step = super().decode(words, position, past, state, encoded)
        return step._replace(state=tuple(step.state))


class NoTensor(UpDown):
    def encode(self, visual):
        return {"tokens": super().encode(visual).tokens, "count": 3}

    def initial_state(self, encoded, sequences):
        return Rows(encoded["tokens"][:, :1])


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (GrowingRows, r"state_language_hidden is \(3, 3, 24\) torch.float32 before the first word and \(3, 3, 48\)"),
        (FixedSlots, "state_attention_cell, a leaf of Slots, does not grow by one slot a word"),
        (OtherTree, "the tree of state_attention_hidden, .* has another structure"),
        (NoTensor, "encoded_count is of type int, not a tensor"),
    ],
)
def test_what_breaks_the_contract_is_named(family, sentence):
    with pytest.raises(ValueError, match=sentence):
        measure(family(UpDownConfig(30, TOKEN_WIDTH, **TINY_SIZES["up_down"])), BEAMS)
