"""Up-Down: two LSTMs with additive attention over regions or grid cells (Anderson et al., CVPR 2018, Sec. 3.2).

At each word the attention LSTM reads the mean-pooled image, the word before and the language LSTM's last output; its
output attends to the visual tokens; the language LSTM reads the attended token and predicts the word.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from training.configs.ranges import PositiveInt, Share
from training.models.attention import MASKED_SCORE
from training.models.captioner import PADDING_ID, Captioner, CaptionerConfig, Rows, Step, Visual
from training.models.layers import Dropout, mean_of_real


@dataclass(frozen=True)
class UpDownConfig(CaptionerConfig):
    """Hyper-parameters; the defaults are the published sizes."""

    lstm_units: PositiveInt = 1000
    """Units of either LSTM, M in the paper."""
    attention_units: PositiveInt = 512
    """Units of the additive attention, H in the paper."""
    embedding_width: PositiveInt = 1000
    """Width of a word embedding, E in the paper."""
    dropout: Share = 0.0
    """Dropout probability of the word embedding and of the language LSTM's output; the paper has none."""


class EncodedTokens(NamedTuple):
    """Everything that decoding needs of B images."""

    tokens: Tensor
    """(B, N, token_width)"""
    projected: Tensor
    """(B, N, attention_units), W_va v of Eq. 3."""
    mean: Tensor
    """(B, 1, token_width), mean of the image's real tokens."""
    mask: Tensor | None
    """(B, 1, N) bool, True where a token is real; None when all are."""


class UpDownState(NamedTuple):
    """Hidden and cell states of the two LSTMs, each (B, G, lstm_units)."""

    attention_hidden: Rows
    attention_cell: Rows
    language_hidden: Rows
    language_cell: Rows


class UpDown(Captioner):
    """The Up-Down captioner."""

    Config = UpDownConfig
    config: UpDownConfig

    def __init__(self, config: UpDownConfig) -> None:
        super().__init__(config)
        units, width = config.lstm_units, config.token_width
        self.word_embedding = nn.Embedding(config.vocabulary_size, config.embedding_width, padding_idx=PADDING_ID)
        self.dropout = Dropout(config.dropout)
        self.attention_lstm = nn.LSTMCell(units + width + config.embedding_width, units)
        self.token_projection = nn.Linear(width, config.attention_units, bias=False)
        self.hidden_projection = nn.Linear(units, config.attention_units, bias=False)
        self.attention_score = nn.Linear(config.attention_units, 1, bias=False)
        self.language_lstm = nn.LSTMCell(width + units, units)
        self.word_projection = nn.Linear(units, config.vocabulary_size)
        self._draw_weights()

    @torch.no_grad()
    def _draw_weights(self) -> None:
        """Draw the first weights as the published code does: N(0, 0.01), biases zero, of the forget gates one."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.01)
            else:
                nn.init.zeros_(parameter)
        for lstm in (self.attention_lstm, self.language_lstm):
            lstm.bias_ih[self.config.lstm_units : 2 * self.config.lstm_units] = 1.0

    def encode(self, visual: Visual) -> EncodedTokens:
        tokens, mask = visual.tokens, None if visual.mask is None else visual.mask[:, None]
        return EncodedTokens(tokens, self.token_projection(tokens), mean_of_real(tokens, visual.mask), mask)

    def initial_state(self, encoded: EncodedTokens, sequences: int) -> UpDownState:
        zeros = encoded.mean.new_zeros(encoded.mean.shape[0], sequences, self.config.lstm_units)
        return UpDownState(Rows(zeros), Rows(zeros), Rows(zeros), Rows(zeros))

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: UpDownState,
        encoded: EncodedTokens,
        *,
        attention: bool = True,
    ) -> Step:
        group, length = words.shape[1:]
        embedded = self.dropout(self.word_embedding(words))
        mean = encoded.mean.expand(-1, group, -1)
        hidden_1, cell_1, hidden_2, cell_2 = (rows.values.flatten(0, 1) for rows in state)
        outputs, weights_of_words = [], []
        for index in range(length):
            joined = torch.cat([hidden_2.unflatten(0, (-1, group)), mean, embedded[:, :, index]], dim=-1)  # Eq. 2
            hidden_1, cell_1 = self.attention_lstm(joined.flatten(0, 1), (hidden_1, cell_1))
            weights = self._attend(hidden_1.unflatten(0, (-1, group)), encoded)
            attended = (weights.to(encoded.tokens.dtype) @ encoded.tokens).flatten(0, 1)  # Eq. 5
            hidden_2, cell_2 = self.language_lstm(torch.cat([attended, hidden_1], dim=-1), (hidden_2, cell_2))  # Eq. 6
            outputs.append(hidden_2.unflatten(0, (-1, group)))
            weights_of_words.append(weights)
        logits = self.word_projection(self.dropout(torch.stack(outputs, dim=2)))  # Eq. 7
        after = (Rows(vector.unflatten(0, (-1, group))) for vector in (hidden_1, cell_1, hidden_2, cell_2))
        return Step(logits, torch.stack(weights_of_words, dim=2), UpDownState(*after))

    def _attend(self, hidden: Tensor, encoded: EncodedTokens) -> Tensor:
        """Compute the attention weights (B, G, N) from the attention LSTM's output (B, G, lstm_units); Eq. 3 and 4."""
        joined = torch.tanh(encoded.projected[:, None] + self.hidden_projection(hidden)[:, :, None])
        scores = self.attention_score(joined)[..., 0]
        if encoded.mask is not None:
            scores = scores.masked_fill(~encoded.mask, MASKED_SCORE)
        return scores.softmax(dim=-1)
