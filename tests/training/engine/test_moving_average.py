"""The moving average of the weights."""

from contextlib import suppress
from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from training.engine.moving_average import WeightAverage


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


def test_applied_sets_the_module_to_the_average_and_restores_its_state_also_after_an_error():
    module = Weighted()
    average = WeightAverage(module, 0.75)
    module.weight.data.fill_(4.0)
    average.update()
    with suppress(RuntimeError), average.applied():
        assert module.weight.item() == pytest.approx(3.6)
        raise RuntimeError("stopped")
    assert module.weight.item() == 4.0
