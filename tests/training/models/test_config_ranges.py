"""Hyper-parameters out of range are refused by name in every family."""

import pytest

from training.models import FAMILIES

CASES = [
    ("smart", {"d_model": 30}, "d_model"),
    ("smart", {"dropout": 1.0}, "dropout"),
    ("smart", {"memory_slots": -1}, "memory_slots"),
    ("smart", {"encoder_layers": 0}, "encoder_layers"),
    ("m2", {"connections": "all"}, "connections must be one of meshed, one_to_one"),
    ("m2", {"gates": "relu"}, "gates must be one of sigmoid, softmax"),
    ("m2", {"connections": "one_to_one", "decoder_layers": 1}, "decoder_layers must equal encoder_layers"),
    ("up_down", {"lstm_units": 0}, "lstm_units"),
    ("x_lan", {"activation": "gelu"}, "activation"),
    ("x_transformer", {"word_dropout": 1.0}, "word_dropout"),
    ("pma_net", {"prototypes": 0}, "prototypes"),
    ("pma_net", {"refreshes_per_epoch": 0}, "refreshes_per_epoch"),
]


@pytest.mark.parametrize(("family", "options", "message"), CASES)
def test_a_config_out_of_range_is_refused(family, options, message):
    with pytest.raises(ValueError, match=message):
        FAMILIES[family].Config(vocabulary_size=30, token_width=24, **options)
