"""Beam search in torch in two styles, over the weights of one model: what captioners publish, and a clean cache.

Both give the captions of :func:`training.decoding.beam_search.beam_search`, decode to the longest length, and keep
no gradient.
Written from a description of the published code, not copied from it.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.beam_search import EXCLUDED
from training.models.captioner import Visual
from training.models.layers import MultiHeadAttention
from training.models.smart import Smart

FORBIDDEN = [Vocabulary.padding_id, Vocabulary.begin_id, Vocabulary.unknown_id]


class Found(NamedTuple):
    """The beams of each image, best first."""

    words: Tensor
    """(B, k, T) int64, padding after the end token."""
    log_probabilities: Tensor
    """(B, k, T)"""
    scores: Tensor
    """(B, k)"""


@torch.inference_mode()
def published_style(model: Smart, tokens: Tensor, mask: Tensor, beam_size: int = 5, max_words: int = 20) -> Found:
    """The search as the field's published repositories do it.

    Every beam carries a copy of the encoded image and of every decoder layer's *inputs* so far. A step projects keys
    and values of all of them anew, for self- and cross-attention and for every beam, sorts all beam * vocabulary
    continuations, and puts the copies in the new order. Nothing stops before ``max_words``.

    Args:
        tokens: (B, N, token_width); mask: (B, N) bool.
    """
    batch, device = tokens.shape[0], tokens.device
    memory, memory_mask = model.encode_levels(Visual(tokens, mask))[-1], mask[:, None, None, :]
    inputs: list[Tensor] = [memory[:, :0]] * len(model.decoder_layers())
    words = torch.full((batch, 1), Vocabulary.begin_id, device=device)
    scores, going_on = torch.zeros(batch, 1, device=device), torch.ones(batch, 1, device=device)
    said: list[Tensor] = []
    chosen: list[Tensor] = []
    for position in range(max_words):
        beams = words.shape[1]
        x = (model.word_embedding(words.reshape(-1, 1)) + model.positions[position + 1]).flatten(0, 1)[:, None]
        for index, layer in enumerate(model.decoder_layers()):
            inputs[index] = torch.cat([inputs[index], x], dim=1)
            x = layer.self_norm(x, _attend(layer.self_attention, x, inputs[index], None))
            x = layer.cross_norm(x, _attend(layer.cross_attention, x, memory, memory_mask))
            x = layer.feed_forward_norm(x, layer.feed_forward(x))
        logits = model.word_projection(x[:, 0])
        logits[:, FORBIDDEN] = EXCLUDED
        log_probabilities = logits.log_softmax(dim=-1).unflatten(0, (batch, beams))
        # A beam that has ended goes on as padding, index 0, at no cost; its other continuations are out of reach.
        log_probabilities = log_probabilities * going_on[..., None]
        totals = scores[..., None] + log_probabilities
        totals[..., 1:] += EXCLUDED * (1 - going_on[..., None])
        ordered, order = torch.sort(totals.flatten(1), dim=-1, descending=True)
        scores, order = ordered[:, :beam_size], order[:, :beam_size]
        parents = torch.div(order, totals.shape[-1], rounding_mode="floor")
        words = order - parents * totals.shape[-1]
        rows = (torch.arange(batch, device=device)[:, None] * beams + parents).flatten()
        inputs = [each[rows] for each in inputs]
        memory, memory_mask = memory[rows], memory_mask[rows]
        said = [each.gather(1, parents) for each in said] + [words]
        flat = log_probabilities.flatten(1)
        chosen = [each.gather(1, parents) for each in chosen] + [flat.gather(1, order)]
        going_on = going_on.gather(1, parents) * (words != Vocabulary.end_id)
    return Found(torch.stack(said, dim=-1), torch.stack(chosen, dim=-1), scores)


@torch.inference_mode()
def kv_cache(model: Smart, tokens: Tensor, mask: Tensor, beam_size: int = 5, max_words: int = 20) -> Found:
    """The search with nothing done twice: projected keys and values are kept, the image's once for all its beams.

    Arguments as :func:`published_style`. Nothing waits for the device, so that a GPU can capture all of it.
    """
    batch, device = tokens.shape[0], tokens.device
    encoded = model.encode(Visual(tokens, mask))
    keys = [cache.keys[:, :, :0] for cache in encoded.caches]
    values = list(keys)
    words = torch.full((batch, 1), Vocabulary.begin_id, device=device)
    scores = torch.zeros(batch, 1, device=device)
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    resting = torch.full((model.config.vocabulary_size,), EXCLUDED, device=device)
    resting[Vocabulary.padding_id] = 0.0
    never = torch.zeros_like(resting)
    never[FORBIDDEN] = EXCLUDED
    first_rows = torch.arange(batch, device=device)[:, None]
    said: list[Tensor] = []
    chosen: list[Tensor] = []
    for position in range(max_words):
        beams = words.shape[1]
        x = model.word_embedding(words) + model.positions[position + 1]  # (B, k, d)
        for index, layer in enumerate(model.decoder_layers()):
            own = x.flatten(0, 1)[:, None]  # (B * k, 1, d)
            own_keys, own_values = layer.self_attention.project_keys_values(own)
            keys[index] = torch.cat([keys[index], own_keys], dim=2)
            values[index] = torch.cat([values[index], own_values], dim=2)
            attended = layer.self_attention.attend(own, keys[index], values[index], None)
            x = layer.self_norm(x, attended.view_as(x))
            x, _ = layer.attend_image(x, encoded.caches[index], encoded.mask, weights=False)
        log_probabilities = (model.word_projection(x) + never).log_softmax(dim=-1)
        log_probabilities = torch.where(ended[..., None], resting, log_probabilities)
        scores, order = (scores[..., None] + log_probabilities).flatten(1).topk(beam_size, dim=-1)
        parents = torch.div(order, never.shape[0], rounding_mode="floor")
        words = order - parents * never.shape[0]
        rows = (first_rows * beams + parents).flatten()
        keys, values = [each[rows] for each in keys], [each[rows] for each in values]
        said = [each.gather(1, parents) for each in said] + [words]
        chosen = [each.gather(1, parents) for each in chosen] + [log_probabilities.flatten(1).gather(1, order)]
        ended = ended.gather(1, parents) | (words == Vocabulary.end_id)
    return Found(torch.stack(said, dim=-1), torch.stack(chosen, dim=-1), scores)


def _attend(attention: MultiHeadAttention, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
    keys, values = attention.project_keys_values(memory)
    return attention.attend(x, keys, values, mask)
