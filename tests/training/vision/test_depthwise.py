"""Depthwise convolutions in bf16 have the values and gradients of ordinary ones."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from training.vision.depthwise import depthwise_convolution, same_padding


def ordinary(x, weight, bias, stride):
    before, after = same_padding(weight.shape[-1], stride)
    return functional.conv2d(functional.pad(x, (before, after) * 2), weight, bias, stride, groups=len(weight))


def operands(height, width, kernel, dtype):
    random = torch.Generator().manual_seed(0)
    shapes = ((2, 3, height, width), (3, 1, kernel, kernel), (3,))
    return [torch.randn(shape, generator=random).to(dtype).requires_grad_() for shape in shapes]


@given(
    height=st.integers(4, 9), width=st.integers(4, 9), kernel=st.sampled_from([3, 5, 7]), stride=st.sampled_from([1, 2])
)
def test_bf16_values_and_gradients_are_those_of_an_ordinary_convolution(height, width, kernel, stride):
    exact, rounded = (operands(height, width, kernel, dtype) for dtype in (torch.float32, torch.bfloat16))
    expected, found = ordinary(*exact, stride), depthwise_convolution(*rounded, stride)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1)).bfloat16()
    pairs = zip(
        (expected, *torch.autograd.grad(expected, exact, gradient.float())),
        (found, *torch.autograd.grad(found, rounded, gradient)),
        strict=True,
    )
    for one, other in pairs:
        assert (one - other.float()).norm() < 0.02 * one.norm()


def test_autocast_computes_in_bf16_and_keeps_the_gradients_of_the_weights_in_float32():
    x, weight, bias = operands(8, 8, 5, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = depthwise_convolution(x, weight, bias, 2)
    found.sum().backward()
    assert found.dtype == torch.bfloat16
    assert weight.grad.dtype == torch.float32
