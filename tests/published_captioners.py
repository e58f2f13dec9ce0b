"""Published captioners with random weights: tiny models of transformers."""

import functools

import torch
from transformers import (
    BertConfig,
    BlipConfig,
    BlipForConditionalGeneration,
    Florence2Config,
    Florence2ForConditionalGeneration,
    GitConfig,
    GitForCausalLM,
    GPT2Config,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    VisionEncoderDecoderConfig,
    VisionEncoderDecoderModel,
    ViTConfig,
)

WORDS = 40
"""Words of a tiny model."""
CHAT_WORDS = 300
"""Words of a tiny chat model: all bytes, and some."""
SPECIAL = {"pad_token_id": 0, "bos_token_id": 38, "eos_token_id": 37}
UNKNOWN = 36
FRAME = 32
"""Width and height of a tiny model's frames; they have four patches."""
_VISION = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
_BERT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
_TINY_VISION = {**_VISION, "image_size": FRAME, "patch_size": 16}
_TINY_TEXT = {**_BERT, **SPECIAL, "vocab_size": WORDS, "max_position_embeddings": 40}


def _git(**text):
    tiny = GitConfig(vision_config=_TINY_VISION, **{**_TINY_TEXT, **text})
    return GitForCausalLM(tiny)


def _blip():
    text = {**_TINY_TEXT, "eos_token_id": 2, "sep_token_id": SPECIAL["eos_token_id"]}
    return BlipForConditionalGeneration(BlipConfig(text_config=text, vision_config=_TINY_VISION))


def _vision_encoder_decoder(decoder, vision):
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(**vision), decoder)
    config.decoder_start_token_id = decoder.bos_token_id
    config.pad_token_id, config.eos_token_id = decoder.pad_token_id, decoder.eos_token_id
    return VisionEncoderDecoderModel(config=config)


def _vit_gpt2():
    sizes = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 40, "vocab_size": WORDS}
    ends = dict.fromkeys(SPECIAL, 39)  # as published: one word pads, begins and ends
    return _vision_encoder_decoder(GPT2Config(**sizes, **ends), _TINY_VISION)


def _smolvlm(words=WORDS, **special):
    text = {
        **_TINY_TEXT,
        "vocab_size": words,
        "max_position_embeddings": 400,
        "num_key_value_heads": 2,
        "rope_theta": 1e5,
        **special,
    }
    image = special.get("image_token_id", SPECIAL["pad_token_id"])  # which no caption has
    vision = {**_TINY_VISION, "patch_size": 8}
    return Idefics3ForConditionalGeneration(
        Idefics3Config(text_config=text, vision_config=vision, scale_factor=2, image_token_id=image)
    )


QUESTION = [0, 8, 15, 9, 2]
"""Published ids of what the encoder of Florence-2 reads with an image."""
FLORENCE2_SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}


def _florence2():
    vision = {
        "depths": (1, 1, 2, 1), "embed_dim": (8, 16, 24, 32), "num_heads": (2, 2, 2, 4), "num_groups": (2, 4, 2, 2),
        "patch_stride": (4, 2, 2, 1), "window_size": 3, "projection_dim": 32, "max_position_embeddings": 9,
    }  # fmt: skip
    text = {
        "model_type": "bart", "d_model": 32, "vocab_size": 60, "max_position_embeddings": 100, **FLORENCE2_SPECIAL,
        "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 48,
        "decoder_layers": 3, "decoder_attention_heads": 4, "decoder_ffn_dim": 64,
    }  # fmt: skip
    config = Florence2Config(vision_config=vision, text_config=text, image_token_id=59)
    return Florence2ForConditionalGeneration(config)


TINY = {
    "git": functools.partial(_git, tie_word_embeddings=True),
    "git-untied": _git,
    "blip": _blip,
    "vit-gpt2": _vit_gpt2,
    "vit-bert": lambda: _vision_encoder_decoder(BertConfig(**_TINY_TEXT), _TINY_VISION),
    "smolvlm": _smolvlm,
    "florence2": _florence2,
}
"""Constructors by name."""
CHAT = {"smolvlm-chat": functools.partial(_smolvlm, CHAT_WORDS, bos_token_id=1, eos_token_id=2, image_token_id=4)}
"""With room for the words of a chat."""


def published(name):
    """Build a model whose words depend on the image, with biases and norms that are not their defaults.

    Deterministic.
    """
    torch.manual_seed(0)
    model = {**TINY, **CHAT}[name]().eval()
    model.config.architectures = [type(model).__name__]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.05)
            else:
                parameter.normal_(std=0.25)
    return model


def with_captions_that_end(model):
    """Make the end token likelier, where the projection to the words has a bias, and Florence-2's."""
    end = SPECIAL["eos_token_id"]
    if isinstance(model, Florence2ForConditionalGeneration):
        row = model.lm_head.weight[FLORENCE2_SPECIAL["eos_token_id"]]
        with torch.no_grad():
            model.model.language_model.decoder.layers[-1].final_layer_norm.bias += 4 * row / row.norm()
    for name, bias in model.named_parameters():
        if name.endswith(("output.bias", "predictions.bias")) and len(bias) == WORDS:
            with torch.no_grad():
                bias[end] += 3
    return model


def image_tokens(model, pixels):
    """Compute the visual tokens (B, N, width) that the decoder of a model sees; pixels are (B, 3, H, W) float32."""
    if isinstance(model, GitForCausalLM):
        return model.git.image_encoder(pixels).last_hidden_state
    if isinstance(model, Idefics3ForConditionalGeneration):
        tokens = model.model.vision_model(pixels).last_hidden_state
        return model.model.connector.pixel_shuffle(tokens, model.config.scale_factor)
    if isinstance(model, Florence2ForConditionalGeneration):
        return model.get_image_features(pixels).pooler_output
    vision = model.vision_model if isinstance(model, BlipForConditionalGeneration) else model.encoder
    return vision(pixels).last_hidden_state


def encoder_words(model, pixels):
    """Return the ids (B, N + Q) that the encoder of Florence-2 reads: a place for each token, and the question."""
    count = image_tokens(model, pixels[:1]).shape[1]
    return torch.tensor([[model.config.image_token_id] * count + QUESTION]).expand(len(pixels), -1)


def published_logits(model, pixels, words):
    """Compute the logits (B, T, V) that a model has after each of the words (B, T) of captions of its images."""
    if isinstance(model, GitForCausalLM):
        return model(input_ids=words, pixel_values=pixels).logits[:, -words.shape[1] :]
    if isinstance(model, BlipForConditionalGeneration):
        tokens = image_tokens(model, pixels)
        return model.text_decoder(input_ids=words, encoder_hidden_states=tokens, is_decoder=True).logits
    if isinstance(model, Idefics3ForConditionalGeneration):
        tokens = torch.full((len(words), model.model.image_seq_len), model.config.image_token_id)
        found = model(input_ids=torch.cat([tokens, words], dim=1), pixel_values=pixels[:, None])
        return found.logits[:, tokens.shape[1] :]
    if isinstance(model, Florence2ForConditionalGeneration):
        return model(input_ids=encoder_words(model, pixels), pixel_values=pixels, decoder_input_ids=words).logits
    return model(pixel_values=pixels, decoder_input_ids=words).logits
