"""The vision graph against torch."""

import numpy as np
import onnxruntime
import torch

from tests.frames import synthetic_images


def test_tokens_equal_the_backbones_for_any_batch(vision_graph, backbone):
    session = onnxruntime.InferenceSession(vision_graph.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch in (1, 3):
        images = synthetic_images(batch, 224, seed=batch)
        (tokens,) = session.run(None, {"image_bgr": images})
        with torch.inference_mode():
            expected = backbone(torch.from_numpy(images)).numpy()
        assert tokens.shape == (batch, 49, 1280)
        np.testing.assert_allclose(tokens, expected, atol=2e-4 * np.abs(expected).max())
