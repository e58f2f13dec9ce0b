"""Captioners small enough to build in a test."""

import copy
import functools

import numpy as np
import torch
from torch.nn import functional

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.engine.trained_captioner import TrainedCaptioner
from training.models import FAMILIES
from training.models.captioner import PADDING_ID, HookContext, Visual
from training.models.smart import Smart, SmartConfig
from training.vision.inverted_residuals import MobileNetV2
from training.vision.side_by_side import side_by_side

MAX_WORDS = 12

TINY_TRANSFORMER = {"d_model": 32, "heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
TINY_TEXT_DECODER = {"d_model": 32, "heads": 4, "d_ff": 64, "layers": 2, "dropout": 0.0, "max_length": 54}
TINY_SIZES = {
    "blip": {**TINY_TEXT_DECODER, "layers": 3, "prompt": [1, 7, 9]},
    "ensemble": {
        "members": [
            {
                "family": "object_relation",
                "model": {**TINY_TRANSFORMER, "encoder_layers": 1, "decoder_layers": 1, "token_dropout": 0.0},
            },
            {"family": "up_down", "model": {"lstm_units": 24, "attention_units": 16, "embedding_width": 20}},
        ]
    },
    "florence2": {
        **TINY_TEXT_DECODER,
        "d_model": 24,
        "encoder_layers": 1,
        "encoder_heads": 2,
        "encoder_d_ff": 32,
        "question": [5, 8],
        "prompt": [1, 9],
    },
    "git": TINY_TEXT_DECODER,
    "m2": {**TINY_TRANSFORMER, "memory_slots": 5},
    "pma_net": {**TINY_TRANSFORMER, "prototypes": 5, "bank_steps": 8, "bank_words": 4, "neighbours": 3},
    "object_relation": {**TINY_TRANSFORMER, "token_dropout": 0.0},
    "smart": {**TINY_TRANSFORMER, "encoder_layers": 1, "memory_slots": 5, "things": 7},
    "smolvlm": {**TINY_TEXT_DECODER, "key_value_heads": 2, "before_image": [1, 8], "prompt": [7, 9]},
    "transformer": TINY_TRANSFORMER,
    "up_down": {"lstm_units": 24, "attention_units": 16, "embedding_width": 20},
    "vision_encoder_decoder": {**TINY_TEXT_DECODER, "project_tokens": True, "tied": False},
    "x_lan": {
        "d_model": 32,
        "heads": 4,
        "attention_units": 4,
        "encoder_layers": 2,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "region_dropout": 0.0,
    },
    "x_transformer": {
        "d_model": 32,
        "heads": 4,
        "attention_units": 4,
        "d_ff": 64,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "dropout": 0.0,
        "word_dropout": 0.0,
        "attention_dropout": 0.0,
        "region_dropout": 0.0,
    },
}
"""Options by family, for those whose defaults are too large for tests."""

TOKEN_WIDTH = 24


def tiny_captioner(family):
    """Build a captioner of 30 words that has learned a few random captions, so that captions differ between images and
    beams end at different steps. Deterministic."""
    return copy.deepcopy(_tiny_captioner(family))


@functools.cache
def _tiny_captioner(family):
    torch.manual_seed(0)
    kind = FAMILIES[family]
    captioner = kind(kind.Config(vocabulary_size=30, token_width=TOKEN_WIDTH, **TINY_SIZES.get(family, {})))
    visual, words = tiny_visual(8, 6, seed=0), tiny_captions(8, 2, seed=0)
    optimizer = torch.optim.Adam(captioner.parameters(), lr=0.01)
    for step in range(60):
        captioner.on_step(HookContext("tiny", 0, step, 60, np.random.default_rng(step)))
        logits = padded_logits(captioner, visual, words[..., :-1])
        loss = functional.cross_entropy(logits.flatten(0, -2), words[..., 1:].flatten(), ignore_index=PADDING_ID)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return captioner.eval()


def padded_logits(captioner, visual, words):
    """Logits (B, G, T, V) of padded captions (B, G, T); position t predicts word t + 1."""
    return captioner.decode_captions(words, captioner.encode(visual))


def tiny_visual(batch, tokens, seed, *, ragged=False):
    """Random tokens with boxes; if ragged, each image has another number of them, the first all.

    Boxes of padding are zeros, as in a batch of stored features.
    """
    random = torch.Generator().manual_seed(seed)
    counts = torch.randint(1, tokens + 1, (batch, 1), generator=random)
    counts[0] = tokens
    boxes = torch.rand(batch, tokens, 2, 2, generator=random).sort(dim=2).values.flatten(2)
    mask = torch.arange(tokens)[None] < counts if ragged else None
    return Visual(
        torch.randn(batch, tokens, TOKEN_WIDTH, generator=random) * 2,
        mask,
        boxes if mask is None else boxes.where(mask[..., None], 0.0),
    )


def tiny_captions(batch, group, seed):
    """Random captions of one to eight words, (batch, group, 11) int64, with begin and end tokens and padding."""
    random = torch.Generator().manual_seed(seed)
    words = torch.randint(4, 30, (batch, group, 11), generator=random)
    words[..., 0] = Vocabulary.begin_id
    ends = torch.randint(2, 10, (batch, group, 1), generator=random)
    places = torch.arange(11)
    words = words.masked_fill(places == ends, Vocabulary.end_id)
    return words.masked_fill(places > ends, PADDING_ID)


def tiny_smart(token_width=24, vocabulary_size=60, seed=0, **changes):
    """Build a SMArT with random weights whose captions end at different lengths."""
    torch.manual_seed(seed)
    options = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 5, **changes}
    model = Smart(SmartConfig(vocabulary_size=vocabulary_size, token_width=token_width, **options))
    with torch.no_grad():
        # A word influences the next one, and beams end at different steps.
        model.word_embedding.weight *= 8
        model.word_projection.weight *= 2
        model.word_projection.weight[Vocabulary.end_id] *= 1.5
    return model.eval()


VOCABULARY = tuple(f"w{index}" for index in range(4, 60))


def tiny_trained(seed=0, class_names=(), vocabulary=VOCABULARY):
    """Build a backbone of full size and a tiny captioner with random weights.

    With class names the backbone has a detector, which detects many objects with high scores.
    """
    torch.manual_seed(seed)
    mobilenet = MobileNetV2().eval()
    with torch.no_grad():
        for convolution in mobilenet.convolutions():
            torch.nn.init.kaiming_normal_(convolution.weight)
    backbone = mobilenet
    if class_names:
        backbone = side_by_side([mobilenet], class_names).eval()
        with torch.no_grad():
            for convolution in backbone.yolox.convolutions():
                torch.nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            for branch in backbone.yolox.head.branches:
                branch.box_shapes.weight.mul_(0.005)
                branch.object_logits.weight.mul_(0.02)
                branch.class_logits.weight.mul_(0.02)
                branch.object_logits.bias.zero_()
    words = (*SPECIAL, *vocabulary)
    record = {
        "name": "tiny",
        "backbone": "mobilenetv2_float32.onnx",
        "backbone_trained_on": [{"name": "ImageNet", "terms": "none stated"}],
        "detector": {"boxes_by": [{"name": "YOLOX-nano (COCO), on the photographs", "terms": "weights Apache-2.0"}]},
        "experiment": {"backbone": "mobilenetv2_float32.onnx", "data": {"max_words": MAX_WORDS}},
    }
    captioner = tiny_smart(backbone.spec.token_width, len(words), seed)
    return TrainedCaptioner("smart", captioner, backbone, Vocabulary(words), record, Search(max_words=MAX_WORDS))
