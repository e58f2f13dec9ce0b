"""Captioners of Hugging Face with random weights: the time of a decoder does not depend on training.

BLIP-base and ViT-GPT2 need `transformers`. The captioners of the papers are families in :mod:`training.models`.
"""

import math
from collections.abc import Callable

import torch
from torch import nn


def hugging_face_decoders(beam_size: int = 5, max_words: int = 20) -> dict[str, Callable[[object], object]]:
    """Build BLIP-base's and ViT-GPT2's text decoders with their own `generate`; the argument of a call is ignored.

    Raises:
        ImportError: transformers is not installed.
    """
    from transformers import BlipTextConfig, GPT2Config, GPT2LMHeadModel
    from transformers.models.blip.modeling_blip_text import BlipTextLMHeadModel

    torch.manual_seed(0)
    blip = BlipTextLMHeadModel(BlipTextConfig(is_decoder=True)).eval()
    gpt2 = GPT2LMHeadModel(GPT2Config(add_cross_attention=True)).eval()

    def generating(model: nn.Module, begin_id: int, image_tokens: int) -> Callable[[object], object]:
        image = torch.randn(1, image_tokens, 768) / math.sqrt(768)

        @torch.inference_mode()
        def generate(_: object) -> object:
            return model.generate(  # type: ignore[operator]
                torch.tensor([[begin_id]]),
                encoder_hidden_states=image,
                encoder_attention_mask=torch.ones(1, image_tokens),
                num_beams=beam_size,
                max_new_tokens=max_words,
                min_new_tokens=max_words,
                do_sample=False,
                pad_token_id=0,
            )

        return generate

    # 577 tokens are BLIP's 384 x 384 in patches of 16 and the class token; 197 those of ViT at 224 x 224.
    return {
        "blip_base_decoder": generating(blip, 30522, 577),
        "vit_gpt2_decoder": generating(gpt2, gpt2.config.bos_token_id, 197),
    }
