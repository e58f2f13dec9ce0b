"""SMArT: a shallow, memory-aware Transformer (Cornia et al., ICRA 2020).

The encoder applies memory-augmented self-attention to the visual tokens; the decoder's cross-attention attends to the
encoder's last level. The closest published code is M2's encoder with a plain decoder; the parity cases
(``tests/training/models/test_smart.py``) compare this file with it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from training.configs.ranges import NonNegativeInt, PositiveInt
from training.models.attention import TransformerConfig, WordCache
from training.models.captioner import PADDING_ID, Slots, State, Visual
from training.models.layers import EncoderLayer
from training.models.transformer import EncodedImage, Transformer

_RARE = -4.0
"""First bias of the presence of things: most are absent."""
_PADDING_LOGIT = -1e4
"""Logit of every thing at a padded token, whose exponential is 0."""


@dataclass(frozen=True)
class SmartConfig(TransformerConfig):
    """Hyper-parameters; the defaults are those of the paper's Sec. IV-C."""

    encoder_layers: PositiveInt = 2
    decoder_layers: PositiveInt = 2
    memory_slots: NonNegativeInt = 40
    """Memory slots of each encoder layer, Table II."""
    attend_padding: bool = False
    """Whether the encoder and the decoder attend to padded regions. M2's published code does: it looks for padding
    after the projection of the regions, whose bias has made it differ from zero."""
    things: NonNegativeInt = 0
    """Number of things whose presence is predicted from the visual tokens and added to each of them, 0 in the paper.
    LightCap (Wang et al., 2022) shows its decoder predicted concepts in a similar way."""
    mask_padding_words: bool = False
    """Whether a padding word inside a caption is invisible to the words after it and predicts all words alike, as in
    M2's published decoder. Makes a difference to a search that may choose padding."""


class PaddingState(NamedTuple):
    """State of a captioner that masks padding words."""

    caches: list[WordCache]
    """One per decoder layer."""
    padding: Slots
    """(B, S) bool, True where a decoded word is padding."""


class Smart(Transformer):
    """The SMArT captioner."""

    Config = SmartConfig
    config: SmartConfig

    def __init__(self, config: SmartConfig) -> None:
        super().__init__(config)
        if config.things:
            self.thing_projection = nn.Linear(config.d_model, config.things)
            nn.init.constant_(self.thing_projection.bias, _RARE)
            self.thing_embedding = nn.Linear(config.things, config.d_model, bias=False)
            nn.init.zeros_(self.thing_embedding.weight)

    @property
    def thing_count(self) -> int:
        return self.config.things

    def thing_logits(self, visual: Visual) -> Tensor:
        return self._thing_logits(torch.relu(self.token_projection(visual.tokens)), visual)

    def _thing_logits(self, projected: Tensor, visual: Visual) -> Tensor:
        """Pool the logits of all tokens by their soft maximum, the logarithm of the mean exponential; (B, things)."""
        of_tokens = self.thing_projection(projected)
        count: Tensor | int = of_tokens.shape[1]
        if visual.mask is not None:
            of_tokens = of_tokens.masked_fill(~visual.mask[..., None], _PADDING_LOGIT)
            count = visual.mask.sum(dim=1, keepdim=True)
        highest = of_tokens.amax(dim=1, keepdim=True)
        return highest.squeeze(1) + ((of_tokens - highest).exp().sum(dim=1) / count).log()

    def project_tokens(self, visual: Visual) -> Tensor:
        if not self.config.things:
            return super().project_tokens(visual)
        projected = torch.relu(self.token_projection(visual.tokens))
        presence = self._thing_logits(projected, visual).sigmoid()
        return self.token_norm(self.token_dropout(projected) + self.thing_embedding(presence)[:, None])

    def _new_encoder_layer(self) -> EncoderLayer:
        return EncoderLayer(self.config, self.config.memory_slots)

    def encode(self, visual: Visual) -> EncodedImage:
        return super().encode(visual._replace(mask=None) if self.config.attend_padding else visual)

    def initial_state(self, encoded: EncodedImage, sequences: int) -> State:
        caches = super().initial_state(encoded, sequences)
        if not self.config.mask_padding_words:
            return caches
        like = caches[0].keys.values
        return PaddingState(caches, Slots(torch.zeros(like.shape[0], 0, dtype=torch.bool, device=like.device)))

    def decode_words(
        self, words: Tensor, positions: Tensor, visible: Tensor, state: State, encoded: EncodedImage, *, attention: bool
    ) -> tuple[Tensor, Tensor | None, State]:
        if not self.config.mask_padding_words:
            return super().decode_words(words, positions, visible, state, encoded, attention=attention)
        is_padding = words == PADDING_ID
        padding = state.padding.append(is_padding, axis=1)
        visible = visible & ~padding.values[:, None]
        logits, weights, caches = super().decode_words(
            words, positions, visible, state.caches, encoded, attention=attention
        )
        return logits.masked_fill(is_padding[..., None], 0.0), weights, PaddingState(caches, padding)
