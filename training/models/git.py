"""GIT: a generative image-to-text Transformer (Wang et al., TMLR 2022), the decoder.

The visual tokens, projected to the decoder's width, stand before the words in the self-attention of BERT's layers; they
see each other, and words see all of them. Positions count words alone.
"""

from dataclasses import dataclass

from torch import nn

from training.configs.checks import check_positive
from training.models.text_decoder import TextDecoder, TextDecoderConfig


@dataclass(frozen=True)
class GitConfig(TextDecoderConfig):
    """Hyper-parameters; the defaults are the sizes of GIT-base and of GIT-large."""

    layers: int = 6
    max_length: int = 1024
    token_epsilon: float = 1e-5
    """Addend of the variance in the LayerNorm of the visual tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "token_epsilon")


class Git(TextDecoder):
    """The decoder of GIT."""

    Config = GitConfig

    def __init__(self, config: GitConfig) -> None:
        projection = nn.Sequential(
            nn.Linear(config.token_width, config.d_model), nn.LayerNorm(config.d_model, eps=config.token_epsilon)
        )
        super().__init__(config, source_width=0, token_projection=projection)
