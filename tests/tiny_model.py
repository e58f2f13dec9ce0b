"""A captioner small enough to build in a test: random weights, real shapes."""

import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.engine.trained_captioner import TrainedCaptioner
from training.models.smart import Smart, SmartConfig
from training.vision.backbone import Backbone
from training.vision.mobilenet_v2 import MobileNetV2
from training.vision.side_by_side import SideBySide

MAX_WORDS = 12


def tiny_smart(token_width: int = 24, vocabulary_size: int = 60, seed: int = 0, **changes: float) -> Smart:
    """A random SMArT whose captions end at different lengths."""
    torch.manual_seed(seed)
    options = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 5, **changes}
    model = Smart(SmartConfig(vocabulary_size=vocabulary_size, token_width=token_width, **options))  # type: ignore[arg-type]
    with torch.no_grad():
        # Words that matter to the next word, and beams that end at different steps.
        model.word_embedding.weight *= 8
        model.word_projection.weight *= 2
        model.word_projection.weight[Vocabulary.end_id] *= 1.5
    return model.eval()


def tiny_trained(seed: int = 0, class_names: tuple[str, ...] = ()) -> TrainedCaptioner:
    """Backbone of full size with random weights, tiny captioner, words ``w4`` .. ``w59``.

    With class names there is a detector in the backbone, which is sure of many things.
    """
    torch.manual_seed(seed)
    mobilenet = MobileNetV2().eval()
    with torch.no_grad():
        for convolution in mobilenet.convolutions():
            torch.nn.init.kaiming_normal_(convolution.weight)
    backbone: Backbone = mobilenet
    if class_names:
        backbone = SideBySide([mobilenet], class_names).eval()
        with torch.no_grad():
            for convolution in backbone.yolox.convolutions():
                torch.nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            for branch in backbone.yolox.head.branches:
                branch.box_shapes.weight.mul_(0.005)
                branch.object_logits.weight.mul_(0.02)
                branch.class_logits.weight.mul_(0.02)
                branch.object_logits.bias.zero_()
    words = (*SPECIAL, *(f"w{index}" for index in range(4, 60)))
    record = {
        "name": "tiny",
        "backbone": "mobilenetv2_float32.onnx",
        "backbone_trained_on": [{"name": "ImageNet", "terms": "none stated"}],
        "detector": {"boxes_by": ["yolox_nano.onnx"]},
        "experiment": {"backbone": "mobilenetv2_float32.onnx", "data": {"max_words": MAX_WORDS}},
    }
    captioner = tiny_smart(backbone.token_width, len(words), seed)
    return TrainedCaptioner("smart", captioner, backbone, Vocabulary(words), record)
