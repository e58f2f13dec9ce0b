"""BLIP: bootstrapping language-image pre-training (Li et al., ICML 2022), the image-grounded text decoder.

BERT's layers with cross-attention to the visual tokens. The published captions follow the prompt "a picture of".
"""

from training.models.text_decoder import TextDecoder, TextDecoderConfig


class Blip(TextDecoder):
    """The text decoder of BLIP; the defaults are the sizes of BLIP-base and of BLIP-large."""

    def __init__(self, config: TextDecoderConfig) -> None:
        super().__init__(config, source_width=config.token_width, transform=True)
