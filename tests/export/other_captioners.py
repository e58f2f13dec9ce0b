"""Captioners that no registered family resembles: what the export must take although no recipe uses it."""

from typing import NamedTuple

import torch
from torch import nn

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import TOKEN_WIDTH
from training.models.captioner import Captioner, CaptionerConfig, Rows, Slots, Step, visible_slots

WIDTH = 32


class LstmState(NamedTuple):
    hidden: Rows
    """(B, G, d)"""
    cell: Rows
    """(B, G, d)"""


class AdditiveLstm(Captioner):
    """Additive attention from the previous hidden state, then one LSTM cell; its state is Rows alone."""

    def __init__(self, config):
        super().__init__(config)
        self.token_projection = nn.Linear(config.token_width, WIDTH)
        self.hidden_projection = nn.Linear(WIDTH, WIDTH)
        self.attention_score = nn.Linear(WIDTH, 1, bias=False)
        self.word_embedding = nn.Embedding(config.vocabulary_size, WIDTH)
        self.cell = nn.LSTMCell(WIDTH + config.token_width, WIDTH)
        self.word_projection = nn.Linear(WIDTH, config.vocabulary_size)

    def encode(self, visual):
        return {"tokens": visual.tokens, "projected": self.token_projection(visual.tokens), "mask": visual.mask}

    def initial_state(self, encoded, sequences):
        start = encoded["projected"].mean(dim=1, keepdim=True).expand(-1, sequences, -1).tanh()
        return LstmState(Rows(start), Rows(torch.zeros_like(start)))

    def decode(self, words, position, past, state, encoded, *, attention=True):
        hidden, cell = state.hidden.values.flatten(0, 1), state.cell.values.flatten(0, 1)
        batch, group, length = words.shape
        logits, attentions = [], []
        for place in range(length):
            query = self.hidden_projection(hidden).unflatten(0, (batch, group))
            scores = self.attention_score((query[:, :, None] + encoded["projected"][:, None]).tanh()).squeeze(-1)
            if encoded["mask"] is not None:
                scores = scores.masked_fill(~encoded["mask"][:, None], -1e9)
            weights = scores.softmax(dim=-1)
            context = weights @ encoded["tokens"]
            inputs = torch.cat([self.word_embedding(words[:, :, place]), context], dim=-1).flatten(0, 1)
            hidden, cell = self.cell(inputs, (hidden, cell))
            logits.append(self.word_projection(hidden).unflatten(0, (batch, group)))
            attentions.append(weights)
        return Step(
            torch.stack(logits, dim=2),
            torch.stack(attentions, dim=2),
            LstmState(Rows(hidden.unflatten(0, (batch, group))), Rows(cell.unflatten(0, (batch, group)))),
        )


class PlacedLstm(AdditiveLstm):
    """The same with the place of every token added to its features."""

    needs_boxes = True

    def __init__(self, config):
        super().__init__(config)
        self.place_projection = nn.Linear(4, config.token_width)

    def encode(self, visual):
        assert visual.boxes_xyxy is not None
        return super().encode(visual._replace(tokens=visual.tokens + self.place_projection(visual.boxes_xyxy * 5)))


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


def tiny_other(family, seed=0):
    """Make a random captioner of 30 words whose captions end at different lengths."""
    torch.manual_seed(seed)
    captioner = family(CaptionerConfig(30, TOKEN_WIDTH)).eval()
    with torch.no_grad():
        captioner.word_embedding.weight *= 3
        captioner.word_projection.weight *= 8
        captioner.word_projection.weight[Vocabulary.end_id] *= 0.7
    return captioner
