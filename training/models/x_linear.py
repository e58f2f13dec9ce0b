"""The X-Linear attention block (Pan et al., CVPR 2020, Sec. 3.2), which X-LAN and X-Transformer share.

The published code (JDAI-CV/image-captioning) differs from the paper in details, and this file follows the code: the
block has H heads with a group norm behind every projection, its embeddings are CELU(W x), and the hidden width of the
attention is half the width of a head.

Shapes: B images, Q queries, K keys, H heads, D model width, D_h = D / H, D_c hidden width of the attention.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.attention import MASKED_SCORE, converted_for_products
from training.models.layers import Dropout

ACTIVATIONS: dict[str, Callable[[float], nn.Module]] = {
    "celu": nn.CELU,
    "elu": nn.ELU,
    "relu": lambda alpha: nn.ReLU(),
}
"""By name; each is made with the factor alpha. ``celu`` is that of the published code, ``elu`` that of the paper
(Sec. 3.2, interactions of infinite order) and ``relu`` the block of the paper without ELU."""


class HeadProjection(nn.Module):
    """GroupNorm(activation(W x + b)), split into heads: one of the four embeddings of the block (Eq. 2 and 6)."""

    def __init__(self, d_model: int, heads: int, activation: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.linear = nn.Linear(d_model, d_model)
        self.activation = activation
        self.scale = nn.Parameter(torch.ones(d_model))
        self.shift = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Project (B, n, D) to (B, H, n, D_h)."""
        x = self.activation(self.linear(x)).unflatten(-1, (self.heads, -1))
        # A group norm with one group a head; written so, the exporter makes one LayerNormalization of it.
        x = functional.layer_norm(x, x.shape[-1:])
        return (x * self.scale.view(self.heads, -1) + self.shift.view(self.heads, -1)).transpose(1, 2)


class XLinearAttention(nn.Module):
    """The X-Linear attention block: spatial and channel-wise attention over products of query and keys."""

    def __init__(self, d_model: int, heads: int, hidden: int, activation: nn.Module, dropout: float) -> None:
        """
        Args:
            d_model: D.
            heads: H.
            hidden: D_c.
            activation: of the embeddings of query, keys and values.
            dropout: probability behind the hidden layer of the attention.
        """
        super().__init__()
        d_head = d_model // heads
        self.query = HeadProjection(d_model, heads, activation)
        self.key = HeadProjection(d_model, heads, activation)
        self.query_value = HeadProjection(d_model, heads, activation)
        self.value = HeadProjection(d_model, heads, activation)
        self.hidden = nn.Linear(d_head, hidden)
        self.dropout = Dropout(dropout)
        self.spatial = nn.Linear(hidden, 1)
        self.channel = nn.Linear(hidden, d_head)

    def project_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Embed what is attended to, (B, K, D), as keys and values: two tensors (B, H, K, D_h)."""
        x = converted_for_products(x)
        return self.key(x), self.value(x)

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from queries to embedded keys and values.

        Args:
            x: (B, Q, D).
            keys, values: (B, H, K, D_h), from :meth:`project_keys_values`.
            mask: bool, broadcastable to (B, H, Q, K), True where a key may be attended to; None: all.

        Returns:
            (B, Q, D) and the spatial attention weights (B, H, Q, K), float32 or wider.
        """
        x = converted_for_products(x)
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


def mean_of_real(x: Tensor, mask: Tensor | None) -> Tensor:
    """Compute the mean of the real tokens of each image.

    Args:
        x: (B, N, D).
        mask: (B, N) bool, True where a token is real; None when all are.

    Returns:
        (B, 1, D)
    """
    if mask is None:
        return x.mean(dim=1, keepdim=True)
    real = mask[..., None].to(x.dtype)
    return (x * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)


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


def check_block_sizes(d_model: int, heads: int, attention_units: int, activation: str) -> None:
    """Check the options of the block.

    Raises:
        ValueError: a value is out of range; the message names it.
    """
    for name, value in (("d_model", d_model), ("heads", heads), ("attention_units", attention_units)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if d_model % heads:
        raise ValueError(f"d_model ({d_model}) must be a multiple of heads ({heads})")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, not {activation!r}")
