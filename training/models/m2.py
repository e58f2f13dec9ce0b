"""M2: Meshed-Memory Transformer (Cornia et al., CVPR 2020).

A memory-augmented encoder (Eq. 1-5), the same as SMArT's, and a decoder whose layers attend to every encoder level and
weigh the results by learned gates (Eq. 6-9). The parity cases (``tests/training/models/test_m2.py``) compare this file
with the published code, whose order of normalisations it has: the cross-attention has its residual connection and
LayerNorm before the gates, and the gated sum has neither.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import NonNegativeInt, PositiveInt
from training.models.attention import KeysValues
from training.models.captioner import PADDING_ID, BufferPolicy
from training.models.layers import DecoderLayer
from training.models.smart import Smart, SmartConfig


@dataclass(frozen=True)
class M2Config(SmartConfig):
    """Hyper-parameters; the defaults are those of the paper's Sec. 4.2, the choices those of its Table 1."""

    encoder_layers: PositiveInt = 3
    decoder_layers: PositiveInt = 3
    connections: Literal["meshed", "one_to_one"] = "meshed"
    """``meshed``: every decoder layer attends to all encoder levels; ``one_to_one``: to the level of its own number,
    without gates."""
    gates: Literal["sigmoid", "softmax"] = "sigmoid"
    """``sigmoid`` (Eq. 8) or ``softmax``: over the levels, for every channel."""
    word_vector_width: NonNegativeInt = 0
    """Width of pretrained word vectors, such as GloVe's, that represent words at input and output (Sec. 4.2, novel
    object captioning); 0: learnt embeddings of width ``d_model`` and a projection of their own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_bias and self.word_vector_width:
            raise ValueError("output_bias: with word_vector_width, logits are products with the vectors of all words")
        if self.connections == "one_to_one" and self.encoder_layers != self.decoder_layers:
            raise ValueError(
                f"decoder_layers must equal encoder_layers ({self.encoder_layers}) with one_to_one connections, "
                f"not {self.decoder_layers}"
            )


class MeshedDecoderLayer(DecoderLayer):
    """A decoder layer that attends to all L encoder levels with one cross-attention and a gate for each level."""

    def __init__(self, config: M2Config) -> None:
        super().__init__(config)
        self._softmax = config.gates == "softmax"
        self.gates = nn.ModuleList(nn.Linear(2 * config.d_model, config.d_model) for _ in range(config.encoder_layers))
        for gate in self.gates:
            assert isinstance(gate, nn.Linear)
            nn.init.zeros_(gate.bias)

    def project_image(self, levels: Sequence[Tensor]) -> KeysValues:
        """Project the encoder levels, each (B, N, d), to keys and values (B, L, H, N, d_h)."""
        return self.cross_attention.project_keys_values(torch.stack([*levels], dim=1)).contiguous()

    def attend_image(
        self, x: Tensor, image: KeysValues, mask: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Apply meshed cross-attention (Eq. 6-8) to all levels, whose weights are averaged, and feed-forward."""
        query = x[:, None]
        attended, attention = self.cross_attention.attend(
            query, image, None if mask is None else mask[:, None], weights=weights
        )
        attended = self.cross_norm(query, attended)  # (B, L, Q, d), Eq. 7
        levels = attended.unbind(dim=1)
        # Eq. 8
        scores = torch.stack(
            [gate(torch.cat([x, level], dim=-1)) for gate, level in zip(self.gates, levels, strict=True)], dim=1
        )
        alpha = scores.softmax(dim=1) if self._softmax else torch.sigmoid(scores)
        x = (alpha * attended).sum(dim=1) / math.sqrt(len(levels))  # Eq. 6
        return self.feed_forward_norm(x, self.feed_forward(x)), None if attention is None else attention.mean(dim=1)


class M2(Smart):
    """The M2 captioner.

    With word vectors, a linear layer converts a word's vector to the width of the model, another one converts the
    decoder's output to the width of the vectors, and the logits are its products with the vectors of all words. Vectors
    from a file stay as they are, so that a word that no caption has remains comparable with those that are learnt.
    """

    Config = M2Config
    config: M2Config
    buffer_policies: ClassVar = {
        **Smart.buffer_policies,
        "word_vectors": BufferPolicy(),
        "has_vector": BufferPolicy(),
    }
    word_vectors: Tensor
    """(V, word_vector_width) float32, vectors from a file."""
    has_vector: Tensor
    """(V, 1) bool, True where a word has one; the others' are rows of ``word_embedding``."""

    def __init__(self, config: M2Config) -> None:
        super().__init__(config)
        width = config.word_vector_width
        if not width:
            # An instance declares the buffers that it has.
            self.buffer_policies = Smart.buffer_policies  # type: ignore[misc]
            return
        self.word_embedding = nn.Embedding(config.vocabulary_size, width, padding_idx=PADDING_ID)
        self.word_input = nn.Linear(width, config.d_model)
        self.word_projection = nn.Linear(config.d_model, width)
        for linear in (self.word_input, self.word_projection):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        nn.init.normal_(self.word_embedding.weight, std=width**-0.5)
        self.register_buffer("word_vectors", torch.zeros(config.vocabulary_size, width))
        self.register_buffer("has_vector", torch.zeros(config.vocabulary_size, 1, dtype=torch.bool))

    @property
    def word_vector_width(self) -> int:
        return self.config.word_vector_width

    @torch.no_grad()
    def set_word_vectors(self, vectors: Tensor, known: Tensor) -> None:
        """Set the vectors of known words; the others begin as random vectors of the same standard deviation."""
        self.word_vectors.copy_(vectors)
        self.has_vector.copy_(known[:, None])
        nn.init.normal_(self.word_embedding.weight, std=float(vectors[known].std()))

    def _vectors(self) -> Tensor:
        return torch.where(self.has_vector, self.word_vectors, self.word_embedding.weight)

    def embed_words(self, words: Tensor, positions: Tensor) -> Tensor:
        if not self.config.word_vector_width:
            return super().embed_words(words, positions)
        converted: Tensor = self.word_input(functional.embedding(words, self._vectors()))
        return converted + positions

    def project_words(self, x: Tensor) -> Tensor:
        if not self.config.word_vector_width:
            return super().project_words(x)
        return functional.linear(self.word_projection(x), self._vectors())

    def _new_decoder_layer(self, index: int) -> DecoderLayer:
        if self.config.connections == "one_to_one":
            return DecoderLayer(self.config, level=index)
        return MeshedDecoderLayer(self.config)
