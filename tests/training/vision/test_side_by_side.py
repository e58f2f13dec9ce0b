"""Several networks on one frame: tokens concatenate their features, detections are those of the detector."""

import pytest
import torch

from tests.tiny_model import tiny_trained
from training.vision.inverted_residuals import EfficientNetLite1
from training.vision.side_by_side import SCORE_SCALE, side_by_side
from training.vision.yolox import STRIDES

CLASSES = ("cup", "chair", "person")
FRAMES = torch.randint(0, 256, (2, 224, 224, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def tiny_backbone():
    return tiny_trained(class_names=CLASSES).backbone


def test_tokens_are_the_grid_the_coarsest_map_and_the_highest_score_of_each_class():
    backbone = tiny_backbone()
    with torch.inference_mode():
        tokens, found = backbone.features(FRAMES)
        grid = backbone.grids[0](FRAMES)
        levels, _ = backbone.yolox.output(FRAMES.permute(0, 3, 1, 2).float())
        torch.testing.assert_close(backbone(FRAMES), tokens)
    assert tokens.shape == (2, 49, backbone.spec.token_width)
    torch.testing.assert_close(tokens[..., :1280], grid)
    torch.testing.assert_close(tokens[..., 1280:1536], levels[-1].flatten(2).transpose(1, 2))
    # Cells of any map that lie in the token's square of 32 pixels, by their middles.
    yolox = backbone.yolox
    squares = (yolox.cells / STRIDES[-1]).floor().long()
    for token in (0, 8, 48):
        inside = (squares[:, 1] * 7 + squares[:, 0]) == token
        highest = found.class_scores[:, inside].amax(dim=1) * SCORE_SCALE
        torch.testing.assert_close(tokens[:, token, 1536:], highest)


def test_folding_the_channel_order_keeps_the_tokens():
    backbone = tiny_backbone()
    with torch.inference_mode():
        before = backbone(FRAMES)
        backbone.fold_channel_order()
        torch.testing.assert_close(backbone(FRAMES), before, atol=1e-3, rtol=0)


def test_tokens_of_several_grids_lie_side_by_side_with_or_without_a_detector():
    one = tiny_backbone()
    other = EfficientNetLite1().eval()
    both = side_by_side([one.grids[0], other], one.yolox).eval()
    with torch.inference_mode():
        tokens = both.features(FRAMES).tokens
        alone, beside = one(FRAMES), other(FRAMES)
        torch.testing.assert_close(tokens, torch.cat([alone[..., :1280], beside, alone[..., 1280:]], dim=-1))
        torch.testing.assert_close(
            side_by_side([one.grids[0], other]).eval().features(FRAMES).tokens, tokens[..., :2560]
        )
    assert tokens.shape == (2, 49, both.spec.token_width)


@pytest.mark.parametrize("size", [96, 288])
def test_frames_of_another_size_have_another_grid_and_boxes_in_fractions_of_the_frame(size):
    backbone = tiny_backbone()
    backbone.set_image_size(size, size)
    assert (backbone.spec.rows, backbone.spec.columns) == (size // 32, size // 32)
    with torch.inference_mode():
        tokens, found = backbone.features(torch.zeros(1, size, size, 3, dtype=torch.uint8))
    assert tokens.shape == (1, (size // 32) ** 2, backbone.spec.token_width)
    boxes = found.boxes_xyxy[0, : (size // 8) ** 2]
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    # The boxes of a network that sees nothing lie in the order of the cells, evenly over the frame.
    rows = centres[:, 1].reshape(size // 8, size // 8)
    steps = rows.diff(dim=0)[1:-1]
    torch.testing.assert_close(steps, torch.full_like(steps, 8 / size), atol=0.5 * 8 / size, rtol=0)
