"""Parameter names of the published X-LAN and X-Transformer (JDAI-CV/image-captioning), and their sizes.

In the published vocabulary id 0 is the begin token, the end token and padding at once. Here these are three words:
begin and padding get the embedding of id 0, and a logit that makes them impossible.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from training.models.x_lan import XLanConfig
from training.models.x_transformer import XTransformerConfig

IMPOSSIBLE = -1000.0
"""Logit of a word that is never predicted: its probability is 0 in float32, and float16 can hold it."""

_BLOCK = {
    "in_proj_q.0": "query.linear", "in_proj_k.0": "key.linear",
    "in_proj_v1.0": "query_value.linear", "in_proj_v2.0": "value.linear",
    "in_proj_q.2": "query", "in_proj_k.2": "key", "in_proj_v1.2": "query_value", "in_proj_v2.2": "value",
    "attn_net.attention_basic.0": "hidden",
    "attn_net.attention_last": "spatial", "attn_net.attention_last2": "channel",
}  # fmt: skip
"""Modules of a block; its group norms have the leaves of :data:`_NORM`."""
_NORM = {"weight": "scale", "bias": "shift"}
_LEAVES = ("weight", "bias")


def _layer(theirs: str, ours: str, leaves: tuple[str, ...] = _LEAVES) -> dict[str, str]:
    return {f"{theirs}.{leaf}": f"{ours}.{leaf}" for leaf in leaves}


def _block(theirs: str, ours: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for part, own in _BLOCK.items():
        leaves = _NORM if part.endswith(".2") else {leaf: leaf for leaf in _LEAVES}
        names |= {f"{theirs}.{part}.{leaf}": f"{ours}.{own}.{leaves[leaf]}" for leaf in _LEAVES}
    return names


def x_lan_names(config: XLanConfig) -> dict[str, str]:
    """Map the published parameter names of X-LAN to ours."""
    names = {
        **_layer("word_embed.0", "word_embedding", ("weight",)),
        **_layer("att_embed.0", "token_projection"),
        **_layer("logit", "word_projection"),
    }
    for i in range(config.encoder_layers):
        names |= _block(f"encoder_layers.layers.{i}.encoder_attn", f"encoder.{i}")
        names |= _layer(f"encoder_layers.bifeat_emb.{i}.0", f"region_updates.{i}.linear")
        names |= _layer(f"encoder_layers.layer_norms.{i}", f"region_updates.{i}.norm")
    names |= _layer("encoder_layers.proj", "whole_projection") | _layer("encoder_layers.layer_norm", "whole_norm")
    names |= _layer("att_lstm", "lstm", ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    for i in range(config.decoder_layers):
        names |= _block(f"attention.layers.{i}.encoder_attn", f"decoder.{i}")
    names |= _layer("attention.proj", "attended_projection") | _layer("attention.layer_norm", "attended_norm")
    return names | _layer("att2ctx.0", "context_projection")


def x_lan_config(published: Mapping[str, Tensor]) -> XLanConfig:
    """Read the sizes of a published X-LAN from its tensors.

    Raises:
        KeyError: a tensor that tells a size is missing.
    """
    hidden = published["encoder_layers.layers.0.encoder_attn.attn_net.attention_basic.0.weight"]
    d_model, token_width = published["att_embed.0.weight"].shape
    return XLanConfig(
        vocabulary_size=vocabulary_size(published["word_embed.0.weight"]),
        token_width=token_width,
        d_model=d_model,
        heads=d_model // hidden.shape[1],
        attention_units=hidden.shape[0],
        encoder_layers=_count(published, "encoder_layers.layers"),
        decoder_layers=_count(published, "attention.layers"),
    )


def x_transformer_names(config: XTransformerConfig) -> dict[str, str]:
    """Map the published parameter names of X-Transformer to ours, the position table included."""
    names = {
        **_layer("att_embed.0", "token_projection"),
        **_layer("att_embed.2", "token_norm"),
        **_layer("encoder.proj_norm.0", "whole_projection"),
        **_layer("encoder.proj_norm.1", "whole_norm"),
        "decoder.embed_tokens.weight": "word_embedding.weight",
        "decoder.embed_positions.pe": "positions",
        **_layer("decoder.layer_norm_word", "word_norm"),
        **_layer("decoder.generator", "word_projection"),
        **_layer("decoder.proj_norm.0", "output_projection"),
        **_layer("decoder.proj_norm.2", "output_norm"),
    }
    for theirs, ours in (("wbil1", "whole_factor"), ("wbil2", "words_factor")):
        names |= _layer(f"decoder.{theirs}.0", f"{ours}.linear") | _layer(f"decoder.{theirs}.2", f"{ours}.norm")
    for i in range(config.encoder_layers):
        theirs, ours = f"encoder.layers.{i}", f"encoder.{i}"
        names |= _block(f"{theirs}.encoder_attn", f"{ours}.attention")
        names |= _update(theirs, ours, "layer_norm")
    for i in range(config.decoder_layers):
        theirs, ours = f"decoder.layers.{i}", f"decoder.{i}"
        names |= _block(f"{theirs}.word_attn", f"{ours}.self_attention")
        names |= _block(f"{theirs}.cross_att", f"{ours}.cross_attention")
        names |= _layer(f"{theirs}.layer_norm_cross", f"{ours}.cross_norm")
        names |= _layer(f"{theirs}.layer_norm_gx", f"{ours}.norm.norm")
        if i < config.decoder_layers - 1:
            names |= _update(theirs, ours, "layer_norm_x")
    return names


def _update(theirs: str, ours: str, norm: str) -> dict[str, str]:
    """Map the update of regions or words and the feed-forward of a layer of X-Transformer."""
    return {
        **_layer(f"{theirs}.bifeat_emb.0", f"{ours}.update.linear"),
        **_layer(f"{theirs}.{norm}", f"{ours}.update.norm"),
        **_layer(f"{theirs}.ff_layer.fc1", f"{ours}.feed_forward.inner"),
        **_layer(f"{theirs}.ff_layer.fc2", f"{ours}.feed_forward.outer"),
        **_layer(f"{theirs}.ff_layer.layer_norms", f"{ours}.feed_forward_norm.norm"),
    }


def x_transformer_config(published: Mapping[str, Tensor]) -> XTransformerConfig:
    """Read the sizes of a published X-Transformer from its tensors.

    Raises:
        KeyError: a tensor that tells a size is missing.
    """
    hidden = published["encoder.layers.0.encoder_attn.attn_net.attention_basic.0.weight"]
    d_model, token_width = published["att_embed.0.weight"].shape
    return XTransformerConfig(
        vocabulary_size=vocabulary_size(published["decoder.embed_tokens.weight"]),
        token_width=token_width,
        d_model=d_model,
        heads=d_model // hidden.shape[1],
        attention_units=hidden.shape[0],
        d_ff=published["encoder.layers.0.ff_layer.fc1.weight"].shape[0],
        encoder_layers=_count(published, "encoder.layers"),
        decoder_layers=_count(published, "decoder.layers"),
    )


def vocabulary_size(embedding: Tensor) -> int:
    """Number of our words for a published embedding: id 0 becomes three of them."""
    return embedding.shape[0] + 2


def published_ids(count: int, unknown: int) -> list[int]:
    """Return the published id of each of our words.

    Args:
        count: number of published ids.
        unknown: published id of the unknown word.
    """
    return [0, 0, 0, unknown, *(index for index in range(1, count) if index != unknown)]


def reorder_words(tensors: dict[str, Tensor], ids: list[int]) -> None:
    """Give tensors under our names the order of our words, in place; padding and begin become impossible.

    Args:
        tensors: with ``word_embedding`` and ``word_projection`` in the published order.
        ids: from :func:`published_ids`.
    """
    for name in ("word_embedding.weight", "word_projection.weight", "word_projection.bias"):
        tensors[name] = tensors[name][torch.tensor(ids)]
    tensors["word_projection.weight"][:2] = 0.0
    tensors["word_projection.bias"][:2] = IMPOSSIBLE


def _count(published: Mapping[str, Tensor], prefix: str) -> int:
    """Count the layers under a prefix."""
    return len({name[len(prefix) + 1 :].split(".")[0] for name in published if name.startswith(f"{prefix}.")})
