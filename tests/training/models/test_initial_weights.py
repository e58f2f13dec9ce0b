"""First weights of the families against the statistics of the published codes, of one layer at the published sizes."""

import pytest
import torch

from training.models import FAMILIES

M2 = {"vocabulary_size": 10201, "token_width": 2048, "encoder_layers": 1, "decoder_layers": 1}
ORT = {**M2, "vocabulary_size": 9488}
# Nothing here depends on the number of words.
X_LINEAR = {**M2, "vocabulary_size": 1000}

MATRICES_OF_M2 = {
    "token_projection.weight": 0.02795,
    "encoder.0.feed_forward.outer.weight": 0.02795,
    "word_embedding.weight": 0.01366,
    "decoder.0.self_attention.query.weight": 0.0442,
    "decoder.0.cross_attention.key.weight": 0.0442,
    "word_projection.weight": 0.01366,
    "token_projection.bias": 0.01276,
    "encoder.0.feed_forward.outer.bias": 0.01276,
    "decoder.0.self_attention.query.bias": 0.0,
}
MEMORY_OF_M2 = {"encoder.0.attention.memory_keys": 0.00976, "encoder.0.attention.memory_values": 0.00976}

PUBLISHED = {
    # aimagelab/meshed-memory-transformer, class Transformer after init_weights
    "transformer": (M2, MATRICES_OF_M2),
    "smart": (M2, {**MATRICES_OF_M2, **MEMORY_OF_M2}),
    "m2": (M2, {**MATRICES_OF_M2, **MEMORY_OF_M2, "decoder.0.gates.0.weight": 0.0361, "decoder.0.gates.0.bias": 0.0}),
    # yahoo/object_relation_transformer, class RelationTransformerModel
    "object_relation": (
        ORT,
        {
            "token_projection.weight": 0.01276,
            "encoder.0.attention.query.weight": 0.0442,
            "encoder.0.attention.query.bias": 0.0255,
            "encoder.0.geometry.weight": 0.1754,
            "encoder.0.feed_forward.outer.weight": 0.02795,
            "decoder.0.cross_attention.output.weight": 0.0442,
            "word_embedding.weight": 0.01414,
            "word_projection.weight": 0.01414,
        },
    ),
    # JDAI-CV/image-captioning: torch's initialisation of every layer
    "x_lan": (
        X_LINEAR,
        {
            "token_projection.weight": 0.01276,
            "word_embedding.weight": 1.0,
            "encoder.0.query.linear.weight": 0.01804,
            "region_updates.0.linear.weight": 0.01276,
            "lstm.weight_ih": 0.01804,
            "word_projection.weight": 0.01804,
        },
    ),
    "x_transformer": (
        X_LINEAR,
        {
            "token_projection.weight": 0.01276,
            "word_embedding.weight": 1.0,
            "encoder.0.attention.query.linear.weight": 0.02083,
            "encoder.0.feed_forward.outer.weight": 0.01042,
            "word_projection.weight": 0.02083,
        },
    ),
    # peteanderson80/Up-Down-Captioner, the fillers of caption_lstm/net.prototxt
    "up_down": (
        {"vocabulary_size": 10010, "token_width": 2048},
        {
            "word_embedding.weight": 0.01,
            "attention_lstm.weight_ih": 0.01,
            "attention_lstm.bias_hh": 0.0,
            "token_projection.weight": 0.01,
            "language_lstm.weight_hh": 0.01,
            "word_projection.weight": 0.01,
            "word_projection.bias": 0.0,
        },
    ),
}


@pytest.mark.parametrize("family", PUBLISHED)
def test_first_weights_have_the_deviations_of_the_published_code(family):
    torch.manual_seed(0)
    sizes, deviations = PUBLISHED[family]
    state = FAMILIES[family](FAMILIES[family].Config(**sizes)).state_dict()
    found = {name: state[name].std().item() for name in deviations}
    # Of n values, a deviation differs from the expected one by about 1 / sqrt(2 n).
    assert found == {
        name: pytest.approx(value, rel=4 / state[name].numel() ** 0.5 + 0.005) for name, value in deviations.items()
    }


def test_up_down_begins_by_keeping_the_state_of_its_cells():
    state = FAMILIES["up_down"](FAMILIES["up_down"].Config(30, 24, lstm_units=8)).state_dict()
    for lstm in ("attention_lstm", "language_lstm"):
        gates = state[f"{lstm}.bias_ih"].unflatten(0, (4, 8))  # torch's order: input, forget, cell, output
        assert torch.equal(gates, torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None].expand(4, 8))
