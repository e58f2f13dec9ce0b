"""Linear layers that compute with 8-bit numbers, so that a captioner learns with what a graph in 8 bits computes.

The arithmetic is that of ONNX Runtime's dynamic quantisation with signed weights in a reduced range (``MatMulInteger``,
and ``DynamicQuantizeLinear`` for the inputs). The weights of each output channel are multiples of ``max |w| / 64``,
because sums of larger ones saturate in the 16-bit additions of CPUs that have AVX2 and no VNNI; the inputs of each
image are multiples of 1/255 of their range, which is extended to contain 0. Gradients pass the rounding unchanged
(straight-through estimator).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn import functional

_WEIGHT_STEPS = 64
"""Steps of the weights' 8-bit values on either side of 0."""
_INPUT_STEPS = 255

_rounded: "ContextVar[dict[EightBitLinear, Tensor] | None]" = ContextVar("_rounded", default=None)
"""The weights that were rounded in :func:`rounded_once`; None outside."""


class EightBitLinear(nn.Linear):
    """A linear layer with 8-bit weights and inputs. Its parameters are in float32 and have the names of ``nn.Linear``.

    A robot captions one frame at a time, and its graph has one scale for an input; so each image of a batch has a scale
    of its own here.
    """

    def forward(self, input: Tensor) -> Tensor:
        if torch.compiler.is_exporting():  # the export replaces the layers by integer products
            return super().forward(input)
        return functional.linear(eight_bit_inputs(input), self._rounded_weight(), self.bias)

    def _rounded_weight(self) -> Tensor:
        known = _rounded.get()
        if known is None or torch.is_grad_enabled():
            return eight_bit_weights(self.weight)
        if self not in known:
            known[self] = eight_bit_weights(self.weight)
        return known[self]


@contextmanager
def rounded_once() -> Iterator[None]:
    """Round the weights of each layer once in the ``with`` block, which computes no gradients and changes no weights: a
    search uses them at every word.
    """
    token = _rounded.set({})
    try:
        yield
    finally:
        _rounded.reset(token)


def eight_bit_weights(weight: Tensor) -> Tensor:
    """Round weights (out, in) to the 8-bit values of their output channels; float32."""
    weight = weight.float()
    scale = (weight.detach().abs().amax(dim=1) / _WEIGHT_STEPS).clamp_min(torch.finfo(torch.float32).tiny)
    zero_point = torch.zeros_like(scale, dtype=torch.int32)
    rounded: Tensor = torch.fake_quantize_per_channel_affine(
        weight, scale, zero_point, 0, -_WEIGHT_STEPS, _WEIGHT_STEPS
    )
    return rounded


def eight_bit_inputs(x: Tensor) -> Tensor:
    """Round inputs (B, ..., d) of B images to the 8-bit values of each image; float32."""
    x = x.float()
    values = x.detach().flatten(1)
    low, high = values.amin(dim=1).clamp_max(0), values.amax(dim=1).clamp_min(0)
    scale = ((high - low) / _INPUT_STEPS).clamp_min(torch.finfo(torch.float32).tiny)
    zero_point = (-low / scale).round().clamp(0, _INPUT_STEPS).to(torch.int32)
    rounded: Tensor = torch.fake_quantize_per_channel_affine(x, scale, zero_point, 0, 0, _INPUT_STEPS)
    return rounded


def set_eight_bits(module: nn.Module, enabled: bool) -> None:
    """Replace the linear layers of a model by those that compute in 8 bits, or back; their parameters stay the same."""
    wanted: type[nn.Linear] = EightBitLinear if enabled else nn.Linear
    replaced = {EightBitLinear, nn.Linear} - {wanted}
    layers = [(parent, name, layer) for parent in module.modules() for name, layer in parent.named_children()]
    for parent, name, layer in layers:
        if type(layer) in replaced:
            assert isinstance(layer, nn.Linear)
            other = wanted(layer.in_features, layer.out_features, bias=False, device="meta")
            other.weight, other.bias = layer.weight, layer.bias
            other.train(layer.training)
            setattr(parent, name, other)


def has_eight_bits(module: nn.Module) -> bool:
    """Whether the linear layers compute in 8 bits."""
    return any(isinstance(layer, EightBitLinear) for layer in module.modules())
