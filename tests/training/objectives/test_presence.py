"""The presence loss of things."""

import numpy as np
import pytest
import torch

from training.objectives.presence import MARGIN, NEGATIVE_FOCUS, PresenceLoss, asymmetric_loss


def test_the_asymmetric_loss_is_that_of_its_paper():
    logits = torch.tensor([[2.0, -1.0, 0.5]])
    present = torch.tensor([[True, False, False]])
    p = logits.sigmoid()[0].tolist()
    shifted = [max(value - MARGIN, 0) for value in p]
    absent = sum(value**NEGATIVE_FOCUS * np.log(1 - value) for value in shifted[1:])
    assert float(asymmetric_loss(logits, present)) == pytest.approx(-(np.log(p[0]) + absent), rel=1e-5)


def test_things_that_are_surely_absent_cost_nothing():
    logits = torch.tensor([[9.0, -4.0]], requires_grad=True)
    asymmetric_loss(logits, torch.tensor([[True, False]])).backward()
    assert logits.grad[0, 1] == 0


def test_targets_are_the_most_frequent_things_and_images_without_a_list_are_unknown():
    loss = PresenceLoss([["bed", "lamp"], None, ["bed"], ["lamp", "bed", "vase"]], 2)
    assert loss.names == ["bed", "lamp"]
    np.testing.assert_array_equal(loss.present, [[1, 1], [0, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(loss.known, [True, False, True, True])


def test_images_without_a_list_have_no_loss():
    loss = PresenceLoss([["bed"], None, ["lamp"]], 2)
    logits = torch.randn(3, 2, requires_grad=True)
    loss(logits, np.array([0, 1, 2])).backward()
    assert logits.grad[1].abs().sum() == 0
    assert logits.grad[[0, 2]].abs().sum(dim=1).min() > 0
    assert loss(logits[1:2], np.array([1])).item() == 0
