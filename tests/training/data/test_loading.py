"""Order and division of batches, and reading ahead."""

import threading
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.loading import load_ahead, shuffle


@given(st.integers(1, 200), st.integers(1, 30), st.integers(0, 5))
def test_a_shuffled_epoch_has_every_image_once_and_depends_on_the_seed_alone(count, batch, seed):
    costs = np.random.default_rng(seed).integers(1, 20, count)
    order = shuffle(costs, batch, np.random.default_rng(seed))
    assert sorted(order) == list(range(count))
    assert order.tolist() == shuffle(costs, batch, np.random.default_rng(seed)).tolist()


def test_images_of_a_batch_have_similar_costs():
    costs = np.random.default_rng(0).integers(5, 20, 400)
    batches = costs[shuffle(costs, 20, np.random.default_rng(0))].reshape(20, 20)
    assert np.ptp(batches, axis=1).max() <= 2


def test_values_come_in_order_and_the_next_ones_are_loaded_while_the_first_is_in_use():
    read = [threading.Event() for _ in range(20)]

    def load(key):
        read[key].set()
        return key * key

    with closing(load_ahead(load, range(20), threads=3)) as values:
        assert next(values) == 0
        assert all(event.wait(30) for event in read[:7])
        assert not read[15].is_set()
        assert list(values) == [key * key for key in range(1, 20)]


def test_an_error_of_loading_is_raised_in_the_place_of_its_value():
    def load(key):
        if key == 2:
            raise ValueError("broken")
        return key

    values = load_ahead(load, range(9), threads=2)
    assert [next(values), next(values)] == [0, 1]
    with pytest.raises(ValueError, match="broken"):
        next(values)
