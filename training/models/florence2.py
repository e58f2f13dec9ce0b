"""Florence-2 (Xiao et al., CVPR 2024): BART (Lewis et al., ACL 2020), whose encoder reads the image and a question."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import PositiveFloat, PositiveInt
from training.models.captioner import Visual
from training.models.text_decoder import DecoderContext, TextDecoder, TextDecoderConfig, TextLayer


@dataclass(frozen=True)
class Florence2Config(TextDecoderConfig):
    """Hyper-parameters; the defaults are the sizes of Florence-2-base."""

    layers: PositiveInt = 6
    epsilon: PositiveFloat = 1e-5
    transform: bool = False
    word_bias: bool = False
    max_length: PositiveInt = 1024
    encoder_layers: PositiveInt = 6
    encoder_heads: PositiveInt = 12
    encoder_d_ff: PositiveInt = 3072
    question: list[int] = field(default_factory=list)
    """Ids of the words that the encoder reads after the visual tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model != self.token_width or self.d_model % self.encoder_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be the width of a visual token ({self.token_width}) and a multiple of "
                f"encoder_heads ({self.encoder_heads})"
            )
        if not all(0 <= word < self.vocabulary_size for word in self.question):
            raise ValueError(f"question must have word ids below {self.vocabulary_size}, not {self.question}")


class Florence2(TextDecoder):
    """Encoder and decoder of Florence-2."""

    Config = Florence2Config
    config: Florence2Config

    def __init__(self, config: Florence2Config) -> None:
        super().__init__(config)
        encoder = replace(config, heads=config.encoder_heads, d_ff=config.encoder_d_ff)
        self.encoder_positions = nn.Embedding(config.max_length, config.d_model)
        self.encoder_norm = config.make_norm()
        self.encoder_layers = nn.ModuleList(TextLayer(encoder) for _ in range(config.encoder_layers))
        self.initialise()

    def encode(self, visual: Visual) -> DecoderContext:
        tokens, mask = visual.tokens, visual.mask
        batch, count = tokens.shape[:2]
        question = torch.tensor(self.config.question, dtype=torch.int64, device=tokens.device)
        places = torch.arange(count + len(question), device=tokens.device).expand(batch, -1)
        if mask is not None:  # the question follows the last real token
            missing = count - mask.sum(dim=1, keepdim=True)
            places = torch.cat([places[:, :count], places[:, count:] - missing], dim=1)
            mask = torch.cat([mask, mask.new_ones(batch, len(question))], dim=1)
        words = functional.embedding(question, self.word_table).expand(batch, -1, -1)
        x = torch.cat([tokens.to(words.dtype), words], dim=1) + self.encoder_positions(places)
        x, visible = self.dropout(self.encoder_norm(x)), None if mask is None else mask[:, None, None]
        for number, layer in enumerate(self.encoder_layers):
            x, _, _ = layer(x, None, visible, DecoderContext([], None, [], None), number)
        return super().encode(Visual(x, mask))

    def _image_shares(self, weights: Tensor, encoded: DecoderContext) -> Tensor:
        """Average the last layer's attention over heads, and leave out the question."""
        shares = weights.mean(dim=1)[..., : -len(self.config.question) or None]
        return shares / shares.sum(dim=-1, keepdim=True)
