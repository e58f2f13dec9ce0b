"""The moving average of the weights."""

from contextlib import suppress
from math import prod
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from training.engine.moving_average import WeightAverage
from training.models.captioner import BufferPolicy


class Weighted(nn.Module):
    """A weight that learns and a counter that does not."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("count", torch.tensor(0))


@given(
    values=st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=20),
    decay=st.floats(0, 0.999),
)
def test_the_average_is_a_geometric_series_whose_decay_is_lower_at_first(values, decay):
    module = Weighted()
    average = WeightAverage(module, decay)
    for value in values:
        module.weight.data.fill_(value)
        average.update()
    decays = [min(decay, (1 + n) / (10 + n)) for n in range(len(values))]
    expected = sum((1 - decays[n]) * prod(decays[n + 1 :]) * value for n, value in enumerate(values))
    assert average.tensors()["weight"].item() == pytest.approx(expected, abs=1e-4)


def test_integer_buffers_are_copied_and_not_averaged():
    module = Weighted()
    average = WeightAverage(module, 0.9)
    module.get_buffer("count").fill_(7)
    average.update()
    assert average.tensors()["count"].item() == 7


def test_applied_sets_the_module_to_the_average_and_restores_its_state_also_after_an_error():
    module = Weighted()
    average = WeightAverage(module, 0.75)
    module.weight.data.fill_(4.0)
    average.update()
    with suppress(RuntimeError), average.applied():
        assert module.weight.item() == pytest.approx(3.6)
        raise RuntimeError("stopped")
    assert module.weight.item() == 4.0


class WithBank(nn.Module):
    buffer_policies: ClassVar = {"bank": BufferPolicy(release=False), "prototype": BufferPolicy()}

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("bank", torch.zeros(2))
        self.register_buffer("prototype", torch.zeros(2))


def test_a_buffer_that_is_not_released_stays_out_of_the_average():
    module = WithBank()
    average = WeightAverage(module, 0.5)
    module.bank += 3
    module.prototype += 5
    average.update()
    assert average.tensors().keys() == {"weight", "prototype"}
    assert average.tensors()["prototype"].tolist() == [5, 5]
    with average.applied():
        assert module.bank.tolist() == [3, 3]
    average.copy_to_module()
    assert module.bank.tolist() == [3, 3]
