"""Two other decoders in torch for the weights of a SMArT model: the published style, and a reordered cache.

Both run in :func:`training.decoding.beam_search.beam_search`, as its ``Rows``; :class:`training.models.smart.Smart` has
the cache that ships, whose slots are never reordered. Written from a description of the published code, not copied.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from training.decoding.beam_search import Hypotheses, SearchSettings, beam_search
from training.models.attention import KeysValues
from training.models.captioner import Captioner, Rows, Step, Visual
from training.models.smart import Smart
from training.models.transformer import EncodedImage


@torch.inference_mode()
def search_to_the_end(captioner: Captioner, visual: Visual, beam_size: int, max_words: int) -> Hypotheses:
    """Search, and always decode ``max_words`` words, without waiting for the device."""
    return beam_search(captioner, visual, SearchSettings(beam_size, max_words, stop="never"))


class _Wrapper(Captioner):
    """Another decoder for the weights of ``smart``, for one word at a time."""

    def __init__(self, smart: Smart) -> None:
        super().__init__(smart.config)
        self.smart = smart

    @property
    def max_words(self) -> int | None:
        return self.smart.max_words


class PublishedState(NamedTuple):
    """State of every beam."""

    memory: Rows
    """(B, G, N, d), a copy of the encoded image."""
    mask: Rows
    """(B, G, N) bool, True where a token is real."""
    inputs: list[Rows]
    """decoder_layers x (B, G, S, d), the inputs of a decoder layer so far."""


class PublishedStyle(_Wrapper):
    """Decoding as the field's published repositories do it.

    Every beam carries a copy of the encoded image and of every decoder layer's *inputs* so far. A step projects keys
    and values of all of them anew, for self- and cross-attention and for every beam, and sorts all beam * vocabulary
    continuations; the search then reorders all copies.
    """

    def encode(self, visual: Visual) -> tuple[Tensor, Tensor]:
        mask = visual.mask
        if mask is None:
            mask = torch.ones(visual.tokens.shape[:2], dtype=torch.bool, device=visual.tokens.device)
        return self.smart.encode_levels(visual)[-1], mask

    def initial_state(self, encoded: tuple[Tensor, Tensor], sequences: int) -> PublishedState:
        memory, mask = (tensor[:, None].repeat_interleave(sequences, dim=1) for tensor in encoded)
        return PublishedState(Rows(memory), Rows(mask), [Rows(memory[:, :, :0])] * len(self.smart.decoder))

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: PublishedState,
        encoded: tuple[Tensor, Tensor],
        *,
        attention: bool = True,
    ) -> Step:
        group = words.shape[1]
        memory, mask = (rows.values.flatten(0, 1) for rows in state[:2])
        x = (self.smart.word_embedding(words) + self.smart.positions[position + 1]).flatten(0, 1)  # (B * G, 1, d)
        inputs = []
        for layer, before in zip(self.smart.decoder_layers(), state.inputs, strict=True):
            own = torch.cat([before.values.flatten(0, 1), x], dim=1)
            inputs.append(Rows(own.unflatten(0, (-1, group))))
            of_words = layer.self_attention.project_keys_values(own)
            attended, _ = layer.self_attention.attend(x, of_words, None, weights=True)
            x = layer.self_norm(x, attended)
            of_image = layer.cross_attention.project_keys_values(memory)
            attended, weights = layer.cross_attention.attend(x, of_image, mask[:, None, None], weights=True)
            x = layer.cross_norm(x, attended)
            x = layer.feed_forward_norm(x, layer.feed_forward(x))
        logits = self.smart.word_projection(x).unflatten(0, (-1, group))  # (B, G, 1, V)
        # The published search sorts all continuations. Ours does not, so they are sorted here, for the time alone.
        torch.sort(logits.log_softmax(dim=-1).flatten(1), dim=-1, descending=True)
        assert weights is not None
        averaged = weights.mean(dim=1).unflatten(0, (-1, group))
        return Step(logits, averaged, PublishedState(state.memory, state.mask, inputs))


class ReorderedCache(_Wrapper):
    """Decoding without repeated work: projected keys and values are cached, those of the image once for all beams.

    The words' keys and values follow their beams: the search reorders them after every word.
    """

    def encode(self, visual: Visual) -> EncodedImage:
        return self.smart.encode(visual)

    def initial_state(self, encoded: EncodedImage, sequences: int) -> list[tuple[Rows, Rows]]:
        keys = encoded.caches[0].keys
        empty = Rows(keys.new_zeros(keys.shape[0], sequences, keys.shape[1], 0, keys.shape[3]))  # (B, G, H, S, d_h)
        return [(empty, empty)] * len(self.smart.decoder)

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: list[tuple[Rows, Rows]],
        encoded: EncodedImage,
        *,
        attention: bool = True,
    ) -> Step:
        group = words.shape[1]
        x = self.smart.word_embedding(words[..., 0]) + self.smart.positions[position + 1]  # (B, G, d)
        after = []
        last = len(state) - 1
        for index, layer in enumerate(self.smart.decoder_layers()):
            own = x.flatten(0, 1)[:, None]  # (B * G, 1, d)
            keys, values = (
                torch.cat([before.values.flatten(0, 1), new], dim=2)
                for before, new in zip(state[index], layer.self_attention.project_keys_values(own), strict=True)
            )
            after.append((Rows(keys.unflatten(0, (-1, group))), Rows(values.unflatten(0, (-1, group)))))
            attended, _ = layer.self_attention.attend(own, KeysValues(keys, values), None)
            x = layer.self_norm(x, attended.view_as(x))
            x, weights = layer.attend_image(x, encoded.caches[index], encoded.mask, weights=index == last)
        assert weights is not None
        return Step(self.smart.word_projection(x)[:, :, None], weights.mean(dim=1)[:, :, None], after)
