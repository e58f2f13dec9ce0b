"""One call of PyTorch's exporter."""

import numpy as np
import torch
from torch import nn

from export.tensorrt import unsupported_by_tensorrt
from export.torch_to_onnx import BATCH, Size, TensorSpec, to_onnx
from tests.export.graphs import session_of


class WithClassToken(nn.Module):
    """A learnt token before those of the image, as in a vision Transformer."""

    def __init__(self):
        super().__init__()
        self.class_token = nn.Parameter(torch.full((1, 1, 3), 0.5))

    def forward(self, image_bgr):
        tokens = image_bgr.float().flatten(1, 2)
        return torch.cat([self.class_token.expand(image_bgr.shape[0], -1, -1), tokens], dim=1)


def test_the_number_of_images_is_read_from_their_floats_because_tensorrt_has_no_shape_of_uint8():
    graph = to_onnx(WithClassToken(), {"image_bgr": TensorSpec(torch.uint8, (Size(BATCH), 2, 4, 3))}, ["tokens"])
    assert any(node.op_type == "Shape" for node in graph.graph.node)
    assert unsupported_by_tensorrt(graph, static=False) == []
    images = np.random.default_rng(0).integers(0, 255, (5, 2, 4, 3), np.uint8)
    (tokens,) = session_of(graph).run(None, {"image_bgr": images})
    np.testing.assert_array_equal(tokens, WithClassToken()(torch.from_numpy(images)).detach())
