"""Dropout, and the memory of slots."""

import pytest
import torch

from training.models.captioner import Slots
from training.models.layers import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_the_share_that_it_is_given_and_scales_the_rest(dtype):
    torch.manual_seed(0)
    x = torch.ones(500, 401, dtype=dtype, requires_grad=True)  # not a multiple of the elements of a random number
    y = Dropout(0.2).train()(x)
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1.25, dtype=dtype).item()}
    assert (y == 0).float().mean().item() == pytest.approx(0.2, abs=0.005)
    assert (y == 0).float().mean(dim=0).std().item() < 0.03  # no column is dropped together
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_dropout_depends_on_the_seed_of_torch_alone():
    dropout, x, masks = Dropout(0.5).train(), torch.ones(10, 10), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(torch.cat([dropout(x), dropout(x)]))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    assert not torch.equal(masks[0][:10], masks[0][10:])


@pytest.mark.parametrize("gradients", [False, True])
def test_slots_of_two_continuations_do_not_overwrite_each_other(gradients):
    def slot(value):
        return torch.full((2, 1, 3), value)

    with torch.set_grad_enabled(gradients):
        before = Slots(torch.zeros(2, 0, 3)).append(slot(1), axis=1).append(slot(2), axis=1)
        first, second = before.append(slot(3), axis=1), before.append(slot(4), axis=1)
        longer = first.append(torch.full((2, 9, 3), 5.0), axis=1)
    for leaf, expected in ((before, [1, 2]), (first, [1, 2, 3]), (second, [1, 2, 4]), (longer, [1, 2, 3] + [5] * 9)):
        assert leaf.values[1, :, 2].tolist() == expected
