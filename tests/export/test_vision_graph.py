"""The vision graph against torch."""

import numpy as np
import onnxruntime
import pytest
import torch

from export.vision import export_vision
from tests.frames import synthetic_images
from tests.tiny_model import tiny_trained


def test_tokens_equal_the_backbones_for_any_batch(vision_graph, backbone):
    session = onnxruntime.InferenceSession(vision_graph.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch in (1, 3):
        images = synthetic_images(batch, 224, seed=batch)
        (tokens,) = session.run(None, {"image_bgr": images})
        with torch.inference_mode():
            expected = backbone(torch.from_numpy(images)).numpy()
        assert tokens.shape == (batch, 49, 1280)
        np.testing.assert_allclose(tokens, expected, atol=2e-4 * np.abs(expected).max())


@pytest.mark.long
def test_the_graph_takes_frames_of_the_backbones_size():
    backbone = tiny_trained(class_names=("cup", "chair")).backbone
    backbone.set_image_size(96, 96)
    session = onnxruntime.InferenceSession(
        export_vision(backbone).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    images = synthetic_images(2, 96)
    tokens, boxes, scores = session.run(["tokens", "boxes", "class_scores"], {"image_bgr": images})
    with torch.inference_mode():
        expected = backbone.features(torch.from_numpy(images))
    assert tokens.shape[1] == 9
    np.testing.assert_allclose(tokens, expected.tokens.numpy(), atol=2e-4 * np.abs(tokens).max())
    np.testing.assert_allclose(boxes, expected.detections.boxes_xyxy.numpy(), atol=1e-4)
    np.testing.assert_allclose(scores, expected.detections.class_scores.numpy(), atol=1e-5)
