"""X-LAN: X-Linear attention blocks as encoder, an LSTM with one of them as decoder (Pan et al., CVPR 2020, Sec. 3.3).

The parity cases (``tests/training/models/test_x_linear_families.py``) compare this file with the published code, which
it follows where paper and code differ; :mod:`training.models.x_linear` names the differences.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import PositiveInt
from training.models.captioner import PADDING_ID, Captioner, Rows, Step, Visual
from training.models.layers import Dropout, mean_of_real
from training.models.x_linear import EncodedRegions, RegionUpdate, XLinearAttention, XLinearConfig


@dataclass(frozen=True)
class XLanConfig(XLinearConfig):
    """Hyper-parameters; the defaults are those of the published configuration.

    ``dropout`` is also behind embedded words and of the context.
    """

    d_model: PositiveInt = 1024
    attention_units: PositiveInt = 64
    """512 in the paper, which has no heads."""
    encoder_layers: PositiveInt = 4
    """Blocks of the encoder, 1 + M in the paper."""
    decoder_layers: PositiveInt = 1
    """Blocks of the decoder."""


class XLanState(NamedTuple):
    """State of the decoder, each (B, G, D)."""

    hidden: Rows
    cell: Rows
    context: Rows


class XLan(Captioner):
    """The X-LAN captioner. The attention of a word is that of the decoder's last block, averaged over heads."""

    Config = XLanConfig
    config: XLanConfig

    def __init__(self, config: XLanConfig) -> None:
        super().__init__(config)
        d, layers = config.d_model, config.encoder_layers
        self.activation = config.new_activation()
        self.dropout = Dropout(config.dropout)
        self.token_projection = nn.Linear(config.token_width, d)
        self.encoder = nn.ModuleList(XLinearAttention(config) for _ in range(layers))
        self.region_updates = nn.ModuleList(RegionUpdate(d, config.region_dropout) for _ in range(layers))
        self.whole_projection = nn.Linear(d * (layers + 1), d)
        self.whole_norm = nn.LayerNorm(d)
        self.word_embedding = nn.Embedding(config.vocabulary_size, d, padding_idx=PADDING_ID)
        self.lstm = nn.LSTMCell(2 * d, d)
        self.decoder = nn.ModuleList(XLinearAttention(config) for _ in range(config.decoder_layers))
        self.attended_projection = nn.Linear(d * (config.decoder_layers + 1), d)
        self.attended_norm = nn.LayerNorm(d)
        self.context_projection = nn.Linear(2 * d, 2 * d)
        self.word_projection = nn.Linear(d, config.vocabulary_size)

    def encode_regions(self, visual: Visual) -> tuple[Tensor, Tensor]:
        """Compute the global vector (B, 1, D) and the regions after the last block (B, N, D); Sec. 3.3.2."""
        mask = None if visual.mask is None else visual.mask[:, None, None]
        regions = self.dropout(self.activation(self.token_projection(visual.tokens)))
        query = mean_of_real(regions, visual.mask)
        queries = [query]
        for block, update in zip(_blocks(self.encoder), self.region_updates, strict=True):
            attended, _ = block.attend(query, block.project_keys_values(regions), mask)  # Eq. 7
            query = self.dropout(attended)
            regions = update(query, regions)  # Eq. 8
            queries.append(query)
        return self.whole_norm(self.whole_projection(torch.cat(queries, dim=-1))), regions  # Eq. 10

    def encode(self, visual: Visual) -> EncodedRegions:
        whole, regions = self.encode_regions(visual)
        caches = [block.project_keys_values(regions).contiguous() for block in _blocks(self.decoder)]
        return EncodedRegions(whole, caches, None if visual.mask is None else visual.mask[:, None, None])

    def initial_state(self, encoded: EncodedRegions, sequences: int) -> XLanState:
        zeros = encoded.whole.new_zeros(encoded.whole.shape[0], sequences, self.config.d_model)
        return XLanState(Rows(zeros), Rows(zeros), Rows(zeros))

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: XLanState,
        encoded: EncodedRegions,
        *,
        attention: bool = True,
    ) -> Step:
        group, length = words.shape[1:]
        embedded = self.dropout(self.activation(self.word_embedding(words)))
        hidden, cell, context = (rows.values for rows in state)
        contexts, weights_of_words = [], []
        for index in range(length):
            joined = torch.cat([embedded[:, :, index], encoded.whole + self.dropout(context)], dim=-1)
            states = (hidden.flatten(0, 1), cell.flatten(0, 1))
            hidden, cell = (x.unflatten(0, (-1, group)) for x in self.lstm(joined.flatten(0, 1), states))
            attended, weights = self._attend(hidden, encoded)
            context = functional.glu(self.context_projection(torch.cat([attended, hidden], dim=-1)))
            contexts.append(context)
            weights_of_words.append(weights)
        logits = self.word_projection(self.dropout(torch.stack(contexts, dim=2)))
        after = XLanState(Rows(hidden), Rows(cell), Rows(context))
        return Step(logits, torch.stack(weights_of_words, dim=2), after)

    def _attend(self, hidden: Tensor, encoded: EncodedRegions) -> tuple[Tensor, Tensor]:
        """Attend from the LSTM's output (B, G, D) to the regions: (B, G, D) and weights (B, G, N); Sec. 3.3.3."""
        query, queries = hidden, [hidden]
        for block, cache in zip(_blocks(self.decoder), encoded.caches, strict=True):
            attended, weights = block.attend(query, cache, encoded.mask)
            query = self.dropout(attended)
            queries.append(query)
        attended = self.attended_norm(self.attended_projection(torch.cat(queries, dim=-1)))
        return attended, weights.mean(dim=1)


def _blocks(modules: nn.ModuleList) -> list[XLinearAttention]:
    return [block for block in modules if isinstance(block, XLinearAttention)]
