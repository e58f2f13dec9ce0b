"""Published backbones in a tiny size and with random weights, in files as their authors publish them."""

import timm
import torch
import transformers

from tests.published_captioners import published

_CROPPED = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
_SQUASHED = {"size": {"height": 32, "width": 32}}
_TOWER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32, "patch_size": 16}
_CLIP = {**_TOWER, "intermediate_size": 24}
_TEXT = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip


def _clip():
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=_TEXT, vision_config=_CLIP))


def _siglip():
    return transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**_CLIP))


def _dinov2(**registers):
    config = {**_TOWER, "patch_size": 8, "image_size": 48, **registers}  # published for larger frames than it is given
    kind = "Dinov2WithRegisters" if registers else "Dinov2"
    return getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**config))


def _vit():
    return transformers.ViTModel(transformers.ViTConfig(**_CLIP))


def _florence2():
    eyes = {
        "depths": (1, 1, 2, 1), "embed_dim": (8, 16, 24, 32), "num_heads": (2, 2, 2, 2), "num_groups": (2, 2, 2, 2),
        "window_size": 3, "projection_dim": 16, "max_temporal_embeddings": 5, "max_position_embeddings": 9,
    }  # fmt: skip
    sizes = ("layers", "attention_heads", "ffn_dim")
    words = {f"{part}_{size}": 2 for part in ("encoder", "decoder") for size in sizes}
    text = {"model_type": "bart", "d_model": 16, "vocab_size": 20, **words}
    return transformers.Florence2ForConditionalGeneration(
        transformers.Florence2Config(vision_config=eyes, text_config=text, image_token_id=19)
    )


_OF_TRANSFORMERS = {
    "clip": (_clip, "CLIPImageProcessor", _CROPPED),
    "siglip": (_siglip, "SiglipImageProcessor", _SQUASHED),
    "dinov2": (_dinov2, "BitImageProcessor", _CROPPED),
    "dinov2_registers": (lambda: _dinov2(num_register_tokens=3), "BitImageProcessor", _CROPPED),
    "vit": (_vit, "ViTImageProcessor", _SQUASHED),
    "blip": (lambda: published("blip"), "BlipImageProcessor", _SQUASHED),
    "git": (lambda: published("git"), "CLIPImageProcessor", _CROPPED),
    "florence2": (_florence2, "CLIPImageProcessor", {"do_center_crop": False, "size": {"height": 96, "width": 96}}),
    "vit_gpt2": (lambda: published("vit-gpt2"), "ViTImageProcessor", _SQUASHED),
}
_OF_TIMM = {
    "timm_vit": (
        "vit_base_patch32_clip_224",
        {"img_size": (32, 48), "patch_size": 16, "embed_dim": 16, "depth": 2, "num_heads": 2},
    ),
    "timm_cnn": ("convnext_atto", {"depths": (1, 1, 1, 1), "dims": (8, 8, 8, 16)}),
}
NAMES = (*_OF_TRANSFORMERS, *_OF_TIMM)


def save_backbone(name, folder):
    """Write one of :data:`NAMES` to a folder; return what an experiment calls it."""
    torch.manual_seed(0)
    if name in _OF_TRANSFORMERS:
        make, processor, options = _OF_TRANSFORMERS[name]
        make().save_pretrained(folder)
        getattr(transformers, processor)(**options).save_pretrained(folder)
        return f"hf/{folder}"
    architecture, arguments = _OF_TIMM[name]
    size = arguments.get("img_size", (64, 64))
    overlay = {"input_size": (3, *size), "crop_mode": "squash"}
    network = timm.create_model(architecture, num_classes=0, **arguments, pretrained_cfg_overlay=overlay)
    timm.models.save_for_hf(network, folder, model_args=dict(arguments), safe_serialization=True)
    return f"timm/local-dir:{folder}"
