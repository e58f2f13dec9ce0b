"""The published parameter names of M2's encoder with a plain decoder, mapped onto ours."""

import numpy as np
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.smart import Smart, SmartConfig


def published_to_ours(state: dict[str, np.ndarray], layers: int, memory_slots: int) -> dict[str, torch.Tensor]:
    """Convert a published state dict (`shared/reference/state_dicts/smart_2layer.txt`) to ours."""
    names = {
        "encoder.fc": "token_projection",
        "encoder.layer_norm": "token_norm",
        "decoder.fc": "word_projection",
        "decoder.word_emb": "word_embedding",
    }
    attention = {"fc_q": "query", "fc_k": "key", "fc_v": "value", "fc_o": "output"}
    for i in range(layers):
        blocks = [
            (f"encoder.layers.{i}", "mhatt", f"encoder.{i}", "attention", "attention_norm"),
            (f"decoder.layers.{i}", "self_att", f"decoder.{i}", "self_attention", "self_norm"),
            (f"decoder.layers.{i}", "enc_att", f"decoder.{i}", "cross_attention", "cross_norm"),
        ]
        for theirs, their_block, ours, our_block, our_norm in blocks:
            for a, b in attention.items():
                names[f"{theirs}.{their_block}.attention.{a}"] = f"{ours}.{our_block}.{b}"
            names[f"{theirs}.{their_block}.layer_norm"] = f"{ours}.{our_norm}.norm"
        for side in ("encoder", "decoder"):
            names[f"{side}.layers.{i}.pwff.fc1"] = f"{side}.{i}.feed_forward.inner"
            names[f"{side}.layers.{i}.pwff.fc2"] = f"{side}.{i}.feed_forward.outer"
            names[f"{side}.layers.{i}.pwff.layer_norm"] = f"{side}.{i}.feed_forward_norm.norm"
    ours_by_theirs = {}
    for key, value in state.items():
        stem, _, leaf = key.rpartition(".")
        if leaf in ("m_k", "m_v"):
            if memory_slots:
                layer = key.split(".")[2]
                name = {"m_k": "memory_keys", "m_v": "memory_values"}[leaf]
                ours_by_theirs[f"encoder.{layer}.attention.{name}"] = torch.from_numpy(value[0])
        elif key == "decoder.pos_emb.weight":
            ours_by_theirs["positions"] = torch.from_numpy(value)
        elif stem in names:
            ours_by_theirs[f"{names[stem]}.{leaf}"] = torch.from_numpy(value)
        elif "running" not in key:
            raise KeyError(key)
    return ours_by_theirs


def load_parity_case(path: str) -> tuple[Smart, dict[str, np.ndarray]]:
    """Load the model with the published weights, and the case's arrays with our word ids."""
    case = dict(np.load(path))
    layers, memory, d_in, d, heads, d_ff, vocabulary, padding, begin, end, _ = (int(v) for v in case["config"])
    theirs = [padding, begin, end]
    theirs += [word for word in range(vocabulary) if word not in theirs]  # by our id
    ours = np.argsort(theirs)
    case["sd/decoder.word_emb.weight"] = case["sd/decoder.word_emb.weight"][theirs]
    case["sd/decoder.fc.weight"] = case["sd/decoder.fc.weight"][theirs]
    case["tf_logprobs"] = case["tf_logprobs"][..., theirs]
    case["captions"] = ours[case["captions"]]
    for beams in ("beam_tokens", "beam3_tokens"):
        words = ours[case[beams]]
        ended = (words == Vocabulary.end_id).cumsum(-1) - (words == Vocabulary.end_id) > 0
        assert not case[beams][ended].any()  # they write 0 after the end token, which is a word elsewhere
        case[beams] = np.where(ended, Vocabulary.padding_id, words)
    state = {key[3:]: value for key, value in case.items() if key.startswith("sd/")}
    model = Smart(
        SmartConfig(
            vocabulary_size=vocabulary, token_width=d_in, d_model=d, heads=heads, d_ff=d_ff,
            encoder_layers=layers, decoder_layers=layers, memory_slots=memory,
            max_length=state["decoder.pos_emb.weight"].shape[0] - 1,
        )
    )  # fmt: skip
    model.load_state_dict(published_to_ours(state, layers, memory))
    return model.eval(), case
