"""The X-Linear attention block (Pan et al., CVPR 2020, Sec. 3.2), which X-LAN and X-Transformer share.

The published code (JDAI-CV/image-captioning) differs from the paper in details, and this file follows the code: the
block has H heads with a group norm behind every projection, its embeddings are CELU(W x), and the hidden width of the
attention is half the width of a head.

Shapes: B images, Q queries, K keys, H heads, D model width, D_h = D / H, D_c hidden width of the attention.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import PositiveFloat, PositiveInt, Share
from training.models.attention import MASKED_SCORE, KeysValues, converted_for_products
from training.models.captioner import CaptionerConfig
from training.models.layers import Dropout

ACTIVATIONS: dict[str, Callable[[float], nn.Module]] = {
    "celu": nn.CELU,
    "elu": nn.ELU,
    "relu": lambda alpha: nn.ReLU(),
}
"""By name; each is made with the factor alpha. ``celu`` is that of the published code, ``elu`` that of the paper
(Sec. 3.2, interactions of infinite order) and ``relu`` the block of the paper without ELU."""


@dataclass(frozen=True)
class XLinearConfig(CaptionerConfig):
    """Hyper-parameters that X-LAN and X-Transformer share; the defaults are those of the published configurations."""

    d_model: PositiveInt
    """D, width of regions, words and attention."""
    attention_units: PositiveInt
    """D_c, hidden width of the attention."""
    encoder_layers: PositiveInt
    decoder_layers: PositiveInt
    heads: PositiveInt = 8
    activation: Literal["celu", "elu", "relu"] = "celu"
    """A key of :data:`ACTIVATIONS`."""
    alpha: PositiveFloat = 1.3
    """Factor of ``celu`` and ``elu``."""
    dropout: Share = 0.5
    """Dropout after the embedding of regions, after every block, and where the family says."""
    attention_dropout: Share = 0.1
    """Dropout after the hidden layer of the attention."""
    region_dropout: Share = 0.3
    """Dropout in :class:`RegionUpdate`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")

    def new_activation(self) -> nn.Module:
        """Make the activation."""
        return ACTIVATIONS[self.activation](self.alpha)


class EncodedRegions(NamedTuple):
    """Everything that decoding needs of B images."""

    whole: Tensor
    """(B, 1, D): the global vector of Eq. 10, or the factor of X-Transformer's first global vectors."""
    caches: list[KeysValues]
    """Keys and values, (B, H, N, D_h) each, for each block or layer of the decoder."""
    mask: Tensor | None
    """(B, 1, 1, N) bool, True where a token is real; None when all are."""


class HeadProjection(nn.Module):
    """GroupNorm(activation(W x + b)), split into heads: one of the four embeddings of the block (Eq. 2 and 6)."""

    def __init__(self, config: XLinearConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.linear = nn.Linear(config.d_model, config.d_model)
        self.activation = config.new_activation()
        self.scale = nn.Parameter(torch.ones(config.d_model))
        self.shift = nn.Parameter(torch.zeros(config.d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Project (B, n, D) to (B, H, n, D_h)."""
        x = self.activation(self.linear(x)).unflatten(-1, (self.heads, -1))
        # A group norm with one group a head; written so, the exporter makes one LayerNormalization of it.
        x = functional.layer_norm(x, x.shape[-1:])
        return (x * self.scale.view(self.heads, -1) + self.shift.view(self.heads, -1)).transpose(1, 2)


class XLinearAttention(nn.Module):
    """The X-Linear attention block: spatial and channel-wise attention over products of query and keys."""

    def __init__(self, config: XLinearConfig) -> None:
        super().__init__()
        d_head = config.d_model // config.heads
        self.query = HeadProjection(config)
        self.key = HeadProjection(config)
        self.query_value = HeadProjection(config)
        self.value = HeadProjection(config)
        self.hidden = nn.Linear(d_head, config.attention_units)
        self.dropout = Dropout(config.attention_dropout)
        self.spatial = nn.Linear(config.attention_units, 1)
        self.channel = nn.Linear(config.attention_units, d_head)

    def project_keys_values(self, x: Tensor) -> KeysValues:
        """Embed what is attended to, (B, K, D), as keys and values (B, H, K, D_h)."""
        x = converted_for_products(x)
        return KeysValues(self.key(x), self.value(x))

    def attend(self, x: Tensor, source: KeysValues, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from ``x`` (B, Q, D) to K keys and values.
        ``mask``: bool, broadcastable to (B, H, Q, K), True where a key may be attended to; None: all.

        Returns:
            (B, Q, D) and the spatial attention weights (B, H, Q, K), float32 or wider.
        """
        x, (keys, values) = converted_for_products(x), source
        products = self.query(x)[..., None, :] * keys[:, :, None]  # Eq. 2, (B, H, Q, K, D_h)
        hidden = self.dropout(torch.relu(self.hidden(products)))  # Eq. 3, (B, H, Q, K, D_c)
        scores = self.spatial(hidden)[..., 0]
        if mask is None:
            pooled = hidden.mean(dim=-2)
        else:
            scores = scores.masked_fill(~mask, MASKED_SCORE)
            real = mask.to(hidden.dtype)  # counted as floats: TensorRT clips no integers
            shares = real / real.sum(dim=-1, keepdim=True).clamp(min=1)
            pooled = (shares[..., None, :] @ hidden)[..., 0, :]  # Eq. 4, (B, H, Q, D_c)
        channels = torch.sigmoid(self.channel(pooled))  # Eq. 5
        weights = scores.softmax(dim=-1)
        # Eq. 6; the value of the query is a factor of the sum, because it is the same for all keys.
        attended = channels * self.query_value(x) * (weights.to(values.dtype) @ values)
        return attended.transpose(1, 2).flatten(2), weights


class RegionUpdate(nn.Module):
    """LayerNorm(Dropout(ReLU(W [v, k])) + k): how regions or words take in an attended feature (Eq. 8)."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * d_model, d_model)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, attended: Tensor, x: Tensor) -> Tensor:
        """Update ``x`` (B, N, D) by ``attended``, (B, 1, D) or (B, N, D)."""
        joined = torch.cat([attended.expand(-1, x.shape[1], -1), x], dim=-1)
        return self.norm(self.dropout(torch.relu(self.linear(joined))) + x)
