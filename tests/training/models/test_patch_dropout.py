"""PatchDropout: which visual tokens remain."""

import pytest
import torch

from training.models.captioner import Visual
from training.models.layers import drop_patches


def visual_of(images, count, mask=None):
    """Tokens and boxes whose values are their places."""
    places = torch.arange(count, dtype=torch.float32).expand(images, count)
    return Visual(places.unsqueeze(2).repeat(1, 1, 3), mask, places.unsqueeze(2).repeat(1, 1, 4))


@pytest.mark.parametrize(("share", "kept"), [(0.25, 37), (0.5, 25), (0.999, 1)])
def test_tokens_of_each_image_are_left_out_with_their_boxes_and_the_others_keep_their_order(share, kept):
    found = drop_patches(visual_of(4, 49), share)
    assert found.tokens.shape == (4, kept, 3)
    assert torch.equal(found.tokens[..., 0], found.boxes_xyxy[..., 0])
    assert torch.all(found.tokens[:, 1:, 0] > found.tokens[:, :-1, 0])
    assert found.mask is None


def test_images_and_steps_lose_different_tokens_and_every_token_is_lost_alike():
    torch.manual_seed(0)
    found = drop_patches(visual_of(2000, 10), 0.3).tokens[..., 0]
    assert not torch.equal(found[0], found[1])
    shares = torch.bincount(found.long().flatten(), minlength=10) / 2000
    torch.testing.assert_close(shares, torch.full((10,), 0.7), atol=0.05, rtol=0)


def test_padding_is_left_out_first():
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    found = drop_patches(visual_of(2, 4, mask), 0.5)
    assert found.tokens[0, :, 0].tolist() == [0.0, 1.0]
    assert found.mask.all()
