"""Object Relation Transformer (Herdade et al., NeurIPS 2019): attention weighed by the geometry of the tokens' boxes.

As in the published code, layers normalise their input (pre-norm), word embeddings are scaled by the square root of
their width, positions count from 0, and boxes are fractions of the image with 1 added to their widths and heights.
LayerNorm is torch's, where the published code divides by the unbiased standard deviation; attention weights have no
dropout.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import NonNegativeFloat, PositiveInt, Share
from training.models.attention import TransformerConfig, draw_matrices
from training.models.captioner import Visual
from training.models.layers import Dropout, EncoderLayer, sinusoidal_positions
from training.models.transformer import Transformer

GEOMETRY_WIDTH = 64
"""Width of the embedding of a pair of boxes."""

_NORM_EPS = 1e-7
"""Added to the variance by normalisations. The published code adds 1e-6 to the deviation, which torch's default, 1e-5
of the variance, exceeds by far where deviations are small. float16 can hold it."""


@dataclass(frozen=True)
class ObjectRelationConfig(TransformerConfig):
    """Hyper-parameters; the defaults are the published sizes."""

    encoder_layers: PositiveInt = 6
    decoder_layers: PositiveInt = 6
    output_bias: bool = True
    token_dropout: Share = 0.5
    """Dropout probability of the projected visual tokens."""
    added_size: NonNegativeFloat = 1.0
    """Added to the widths and heights of boxes, which are fractions of the image; 0 gives the equation of the paper."""
    legacy_extra_skip: bool = False
    """Whether the encoder's attention adds its input before its output projection, as some published models do."""
    norm_first: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.legacy_extra_skip and self.attention_on_attention:
            raise ValueError("legacy_extra_skip goes with an output projection, not with attention_on_attention")


def embed_geometry(boxes_xyxy: Tensor, added_size: float) -> Tensor:
    """Embed the relative geometry of every pair of boxes (Eq. 5 and 7 of the paper).
    ``boxes_xyxy``: (B, N, 4) float32, fractions of the image.

    Returns:
        (B, N, N, 64): sines, then cosines, of displacement and ratio of size at wave lengths up to 1000. The first box
        of a pair is the query's.
    """
    low, high = boxes_xyxy[..., :2], boxes_xyxy[..., 2:]
    centre, size = (low + high) / 2, (high - low + added_size).clamp(min=_SMALLEST)
    displacement = (centre[:, :, None] - centre[:, None]).abs() / size[:, :, None]
    relative = torch.cat([displacement.clamp(min=_SMALLEST), size[:, :, None] / size[:, None]], dim=-1).log()
    count = GEOMETRY_WIDTH // 8
    waves = 1000.0 ** (-torch.arange(count, device=boxes_xyxy.device) / count)
    angles = (100 * relative[..., None] * waves).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


_SMALLEST = 1e-3
"""Smallest displacement, in sizes of the box, and smallest size, in fractions of the image."""


class RelationEncoderLayer(EncoderLayer):
    """Self-attention whose scores have the log of a geometric weight added (Eq. 6 and 8), feed-forward."""

    def __init__(self, config: ObjectRelationConfig) -> None:
        super().__init__(config)
        self.geometry = nn.Linear(GEOMETRY_WIDTH, config.heads)
        self._extra_skip = config.legacy_extra_skip

    def scores_of(self, geometry: Tensor) -> Tensor:
        """Compute the addend of the attention scores (B, H, N, N) of a geometry (B, N, N, 64)."""
        with torch.autocast(geometry.device.type, enabled=False):  # in bf16 a weight near 0 falls on the other side
            weights = torch.relu(self.geometry(geometry)).permute(0, 3, 1, 2)
        return weights.float().clamp(min=1e-6).log()

    def _attend(self, x: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        attended = super()._attend(x, mask, bias)
        if self._extra_skip:
            assert isinstance(self.attention.output, nn.Linear)
            # W (a + x) + b = (W a + b) + W x
            attended = attended + functional.linear(x, self.attention.output.weight)
        return attended


class ObjectRelation(Transformer):
    """The Object Relation Transformer; boxes are those of regions, or of the cells of a grid."""

    Config = ObjectRelationConfig
    config: ObjectRelationConfig
    needs_boxes = True

    def __init__(self, config: ObjectRelationConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.token_dropout = Dropout(config.token_dropout)
        self.token_norm = nn.Identity()
        self.encoder_norm = nn.LayerNorm(d)
        self.word_dropout = Dropout(config.dropout)
        self.decoder_norm = nn.LayerNorm(d)
        self.positions[1:] = sinusoidal_positions(config.max_length, d)
        for part in self.modules():
            if isinstance(part, nn.LayerNorm):
                part.eps = _NORM_EPS
        self._draw_weights()

    def _draw_weights(self) -> None:
        """Draw the first weights as the published code does, with torch's biases and token projection."""
        for part in self.modules():
            if isinstance(part, nn.Linear):
                part.reset_parameters()
        draw_matrices(self)
        self.token_projection.reset_parameters()
        for layer in self.encoder:
            assert isinstance(layer, RelationEncoderLayer)
            # A layer of its own for each head in the published code.
            for weights_of_head in layer.geometry.weight.detach().split(1):
                nn.init.xavier_uniform_(weights_of_head)

    def _new_encoder_layer(self) -> RelationEncoderLayer:
        return RelationEncoderLayer(self.config)

    def encode_levels(self, visual: Visual) -> list[Tensor]:
        """Compute every encoder level, the last one normalised: encoder_layers x (B, N, d)."""
        assert visual.boxes_xyxy is not None
        geometry = embed_geometry(visual.boxes_xyxy, self.config.added_size)
        x = self.token_dropout(torch.relu(self.token_projection(visual.tokens)))
        levels = []
        for layer in self.encoder:
            assert isinstance(layer, RelationEncoderLayer)
            x = layer(x, visual.mask, layer.scores_of(geometry))
            levels.append(x)
        return [*levels[:-1], self.encoder_norm(x)]

    def embed_words(self, words: Tensor, positions: Tensor) -> Tensor:
        embedded: Tensor = self.word_embedding(words)
        return self.word_dropout(embedded * math.sqrt(self.config.d_model) + positions)

    def project_words(self, x: Tensor) -> Tensor:
        logits: Tensor = self.word_projection(self.decoder_norm(x))
        return logits
