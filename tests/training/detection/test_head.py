"""The head: small, shaped as it says, and able to learn."""

import torch

from tests.tiny_model import tiny_trained
from training.detection.classes import DETECTION_CLASSES
from training.detection.head import STRIDES, DetectionHead
from training.models.mobilenet_v2 import MobileNetV2


def test_the_maps_are_on_the_way_to_the_tokens() -> None:
    backbone = tiny_trained().backbone
    assert backbone is not None
    frames = torch.randint(0, 256, (2, 224, 224, 3), dtype=torch.uint8)
    with torch.inference_mode():
        tokens, levels = backbone.pyramid(frames)
        torch.testing.assert_close(tokens, backbone(frames))
    assert [tuple(level.shape[1:]) for level in levels] == [
        (width, 224 // stride, 224 // stride) for width, stride in zip(MobileNetV2.level_widths, STRIDES, strict=True)
    ]


def test_a_cell_of_a_new_head_has_a_box_around_itself_and_hardly_any_class() -> None:
    head = DetectionHead(DETECTION_CLASSES)
    assert sum(parameter.numel() for parameter in head.parameters()) < 1_500_000
    levels = [
        torch.rand(2, width, 224 // stride, 224 // stride)
        for width, stride in zip(MobileNetV2.level_widths, STRIDES, strict=True)
    ]
    found = head(levels)
    cells = 28 * 28 + 14 * 14 + 7 * 7
    assert found.class_logits.shape == (2, cells, len(DETECTION_CLASSES))
    assert found.boxes_xyxy.shape == (2, cells, 4)
    centres = (found.boxes_xyxy[..., :2] + found.boxes_xyxy[..., 2:]) * 112
    assert ((centres - head.cells).abs() < head.strides / 2).all()
    assert found.class_logits.sigmoid().max() < 0.1


def test_the_classes_are_the_challenges_and_each_once() -> None:
    from smart_caption_ros.class_names import normalise
    from smart_caption_ros.datasets.acvr import ACVR_CLASSES

    assert set(ACVR_CLASSES[1:]) < set(DETECTION_CLASSES)
    assert len(set(DETECTION_CLASSES)) == len(DETECTION_CLASSES)
    assert all(normalise(name) == name for name in DETECTION_CLASSES)
