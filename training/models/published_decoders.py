"""The published decoders as values of :class:`TextDecoderConfig`; the defaults are the sizes of the base models."""

from dataclasses import dataclass
from typing import Literal

from training.configs.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from training.models.text_decoder import TextDecoder, TextDecoderConfig


class Blip(TextDecoder):
    """BLIP: bootstrapping language-image pre-training (Li et al., ICML 2022), the image-grounded text decoder.

    BERT's layers with cross-attention to the visual tokens. The published captions follow the prompt "a picture of".
    """


@dataclass(frozen=True)
class GitConfig(TextDecoderConfig):
    layers: PositiveInt = 6
    max_length: PositiveInt = 1024
    transform: bool = False
    image: Literal["cross", "prefix"] = "prefix"
    project_tokens: bool = True
    token_epsilon: NonNegativeFloat = 1e-5


class Git(TextDecoder):
    """GIT: a generative image-to-text Transformer (Wang et al., TMLR 2022), the decoder.

    The visual tokens, projected to the decoder's width, stand before the words in the self-attention of BERT's layers;
    they see each other, and words see all of them.
    """

    Config = GitConfig


@dataclass(frozen=True)
class VisionEncoderDecoderConfig(TextDecoderConfig):
    activation: str = "gelu_new"
    epsilon: PositiveFloat = 1e-5
    norm_first: bool = True
    embedding_norm: bool = False
    transform: bool = False
    word_bias: bool = False
    max_length: PositiveInt = 1024


class VisionEncoderDecoder(TextDecoder):
    """The decoder of a vision-encoder-decoder model: GPT-2 with cross-attention (Radford et al., 2019), or BERT's."""

    Config = VisionEncoderDecoderConfig


@dataclass(frozen=True)
class SmolVlmConfig(TextDecoderConfig):
    d_model: PositiveInt = 576
    heads: PositiveInt = 9
    key_value_heads: PositiveInt | None = 3
    d_ff: PositiveInt = 1536
    layers: PositiveInt = 30
    dropout: Share = 0.0
    activation: str = "silu"
    gated: bool = True
    bias: bool = False
    norm: Literal["layer", "rms"] = "rms"
    epsilon: PositiveFloat = 1e-5
    norm_first: bool = True
    embedding_norm: bool = False
    transform: bool = False
    word_bias: bool = False
    tied: bool = False
    max_length: PositiveInt = 8192
    rotary_base: NonNegativeFloat = 1e5
    image: Literal["cross", "prefix"] = "prefix"
    causal_image: bool = True
    project_tokens: bool = True


class SmolVlm(TextDecoder):
    """SmolVLM (Marafioti et al., 2025), Idefics3 in transformers: Llama's decoder.

    Words, the visual tokens and a question are one causal sequence, which a caption continues.
    """

    Config = SmolVlmConfig
