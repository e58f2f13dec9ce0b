"""Other captioners in their published sizes, with random weights: what a decoder costs does not depend on training.

The Object Relation Transformer (Herdade et al., 2019) and Up-Down (Anderson et al., 2018) are those of Fig. 3 of the
SMArT paper. BLIP-base and ViT-GPT2 are Hugging Face's, where `transformers` is installed.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.torch_decoders import FORBIDDEN
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.beam_search import EXCLUDED
from training.models.captioner import Visual
from training.models.layers import EncoderLayer
from training.models.smart import Smart, SmartConfig


class ObjectRelation(Smart):
    """Six layers of encoder and decoder, d = 512, no memory slots; the geometry of the boxes weighs the attention."""

    def __init__(self, vocabulary_size: int, token_width: int) -> None:
        layers = {"encoder_layers": 6, "decoder_layers": 6, "memory_slots": 0}
        super().__init__(SmartConfig(vocabulary_size=vocabulary_size, token_width=token_width, **layers))
        self.geometry = nn.ModuleList(nn.Linear(64, self.config.heads) for _ in range(6))

    def encode_levels(self, visual: Visual) -> list[Tensor]:
        """As :meth:`Smart.encode_levels`, with boxes made up for the tokens."""
        tokens, mask = visual.tokens, visual.mask
        boxes = torch.rand(*tokens.shape[:2], 4, generator=torch.Generator().manual_seed(0)).to(tokens.device)
        embedded = _embed_geometry(boxes)
        x = self.token_norm(torch.relu(self.token_projection(tokens)))
        levels = []
        for layer, geometry in zip(self.encoder, self.geometry, strict=True):
            assert isinstance(layer, EncoderLayer)
            attention = layer.attention
            keys, values = attention.project_keys_values(x)
            queries = attention.split_heads(attention.query(x)) * attention.d_head**-0.5
            weights = torch.relu(geometry(embedded)).permute(0, 3, 1, 2).clamp(min=1e-6).log()
            scores = queries @ keys.transpose(-2, -1) + weights
            if mask is not None:
                scores = scores.masked_fill(~mask[:, None, None, :], EXCLUDED)
            attended = attention.output((scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2))
            x = layer.attention_norm(x, attended)
            x = layer.feed_forward_norm(x, layer.feed_forward(x))
            levels.append(x)
        return levels


def _embed_geometry(boxes: Tensor) -> Tensor:
    """(B, N, 4) corners -> (B, N, N, 64): sines and cosines of the relative place and size of every pair."""
    low, high = torch.minimum(boxes[..., :2], boxes[..., 2:]), torch.maximum(boxes[..., :2], boxes[..., 2:])
    centre, size = (low + high) / 2, (high - low) + 1e-3
    offsets = (centre[:, :, None] - centre[:, None]).abs() / size[:, :, None]
    relative = torch.cat([offsets.clamp(min=1e-3), size[:, :, None] / size[:, None]], dim=-1).log()
    waves = 1000.0 ** (-torch.arange(8, device=boxes.device) / 8)
    angles = (100 * relative[..., None] * waves).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class UpDown(nn.Module):
    """Two LSTMs of 1,000 units and additive attention of 512 over the regions."""

    def __init__(self, vocabulary_size: int, token_width: int, width: int = 1000, attention_width: int = 512) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.attention_lstm = nn.LSTMCell(width + token_width + width, width)
        self.language_lstm = nn.LSTMCell(token_width + width, width)
        self.of_tokens = nn.Linear(token_width, attention_width, bias=False)
        self.of_state = nn.Linear(width, attention_width, bias=False)
        self.attention = nn.Linear(attention_width, 1, bias=False)
        self.word_projection = nn.Linear(width, vocabulary_size)
        self.width = width

    @torch.inference_mode()
    def caption(self, tokens: Tensor, mask: Tensor, beam_size: int = 5, max_words: int = 20) -> Tensor:
        """Beam search over (B, N, token_width) without early exit; words (B, k, T)."""
        batch = tokens.shape[0]
        share = mask[..., None] / mask.sum(dim=1)[:, None, None]
        mean = (tokens * share).sum(dim=1)
        projected = self.of_tokens(tokens)
        states = [tokens.new_zeros(batch, self.width) for _ in range(4)]
        words, scores = torch.full((batch, 1), Vocabulary.begin_id), torch.zeros(batch, 1)
        said: list[Tensor] = []
        for _ in range(max_words):
            beams = words.shape[1]
            first, first_cell, second, second_cell = states

            def per_beam(x: Tensor, beams: int = beams) -> Tensor:
                return x.repeat_interleave(beams, dim=0)

            joined = torch.cat([second, per_beam(mean), self.embedding(words.flatten())], dim=1)
            first, first_cell = self.attention_lstm(joined, (first, first_cell))
            queries = self.of_state(first).unflatten(0, (batch, beams))
            energies = self.attention(torch.tanh(projected[:, None] + queries[:, :, None]))[..., 0]
            weights = energies.masked_fill(~mask[:, None], EXCLUDED).softmax(dim=-1)
            attended = (weights @ tokens).flatten(0, 1)
            second, second_cell = self.language_lstm(torch.cat([attended, first], dim=1), (second, second_cell))
            logits = self.word_projection(second)
            logits[:, FORBIDDEN] = EXCLUDED
            totals = scores[..., None] + logits.log_softmax(dim=-1).unflatten(0, (batch, beams))
            scores, order = totals.flatten(1).topk(beam_size, dim=-1)
            parents = torch.div(order, totals.shape[-1], rounding_mode="floor")
            words = order - parents * totals.shape[-1]
            rows = (torch.arange(batch)[:, None] * beams + parents).flatten()
            states = [each[rows] for each in (first, first_cell, second, second_cell)]
            said = [each.gather(1, parents) for each in said] + [words]
        return torch.stack(said, dim=-1)


def hugging_face_decoders(beam_size: int = 5, max_words: int = 20) -> dict[str, Callable[[object], object]]:
    """BLIP-base's and ViT-GPT2's text decoders with their own `generate`; the argument of a call is ignored.

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
