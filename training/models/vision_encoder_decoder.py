"""The decoder of a vision-encoder-decoder model: GPT-2 or BERT with cross-attention to visual tokens."""

from dataclasses import dataclass

from torch import nn

from training.configs.checks import check_one_of
from training.models.text_decoder import TextDecoder, TextDecoderConfig

DECODERS = ("gpt2", "bert")


@dataclass(frozen=True)
class VisionEncoderDecoderConfig(TextDecoderConfig):
    """Hyper-parameters; the defaults are the sizes of ViT-GPT2."""

    decoder: str = "gpt2"
    """``gpt2`` or ``bert``."""
    activation: str = "gelu_new"
    epsilon: float = 1e-5
    max_length: int = 1024
    project_tokens: bool = False
    """Whether a linear layer brings the visual tokens to the decoder's width first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "decoder", DECODERS)


class VisionEncoderDecoder(TextDecoder):
    """GPT-2 or BERT as a captioner."""

    Config = VisionEncoderDecoderConfig

    def __init__(self, config: VisionEncoderDecoderConfig) -> None:
        projection = nn.Linear(config.token_width, config.d_model) if config.project_tokens else None
        super().__init__(
            config,
            source_width=config.token_width if projection is None else config.d_model,
            pre_norm=config.decoder == "gpt2",
            transform=config.decoder == "bert",
            token_projection=projection,
        )
