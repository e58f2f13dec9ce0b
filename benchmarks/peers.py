"""Other captioners in their published sizes, with random weights: the time of a decoder does not depend on training.

The Object Relation Transformer (Herdade et al., 2019) is in Fig. 3 of the SMArT paper, as is Up-Down
(:mod:`training.models.up_down`). BLIP-base and ViT-GPT2 are Hugging Face's, where `transformers` is installed.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from training.models.captioner import Visual
from training.models.layers import MASKED_SCORE, EncoderLayer
from training.models.smart import Smart, SmartConfig


class ObjectRelation(Smart):
    """The Object Relation Transformer: six layers each, d = 512; box geometry weights the encoder's attention."""

    needs_boxes = True

    def __init__(self, vocabulary_size: int, token_width: int) -> None:
        layers = {"encoder_layers": 6, "decoder_layers": 6, "memory_slots": 0}
        super().__init__(SmartConfig(vocabulary_size=vocabulary_size, token_width=token_width, **layers))
        self.geometry = nn.ModuleList(nn.Linear(64, self.config.heads) for _ in range(6))

    def encode_levels(self, visual: Visual) -> list[Tensor]:
        assert visual.boxes_xyxy is not None
        embedded = _embed_geometry(visual.boxes_xyxy)
        x = self.token_norm(torch.relu(self.token_projection(visual.tokens)))
        levels = []
        for layer, geometry in zip(self.encoder, self.geometry, strict=True):
            assert isinstance(layer, EncoderLayer)
            attention = layer.attention
            keys, values = attention.project_keys_values(x)
            queries = attention.split_heads(attention.query(x)) * attention.d_head**-0.5
            weights = torch.relu(geometry(embedded)).permute(0, 3, 1, 2).clamp(min=1e-6).log()
            scores = queries @ keys.transpose(-2, -1) + weights
            if visual.mask is not None:
                scores = scores.masked_fill(~visual.mask[:, None, None, :], MASKED_SCORE)
            attended = attention.output((scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2))
            x = layer.attention_norm(x, attended)
            x = layer.feed_forward_norm(x, layer.feed_forward(x))
            levels.append(x)
        return levels


def _embed_geometry(boxes: Tensor) -> Tensor:
    """Embed boxes (B, N, 4), corners, as (B, N, N, 64): sines and cosines of the relative position of every pair."""
    low, high = boxes[..., :2], boxes[..., 2:]
    centre, size = (low + high) / 2, (high - low) + 1e-3
    offsets = (centre[:, :, None] - centre[:, None]).abs() / size[:, :, None]
    relative = torch.cat([offsets.clamp(min=1e-3), size[:, :, None] / size[:, None]], dim=-1).log()
    waves = 1000.0 ** (-torch.arange(8, device=boxes.device) / 8)
    angles = (100 * relative[..., None] * waves).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


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
