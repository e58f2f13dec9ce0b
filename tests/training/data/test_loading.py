"""Order and division of batches, and reading ahead."""

import threading
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.loading import divide_batch, load_ahead, shuffle

COSTS = st.lists(st.integers(1, 90), min_size=1, max_size=40).map(lambda costs: np.array(costs, float))


@given(COSTS, st.integers(1, 5), st.integers(1, 5))
def test_the_shares_of_all_processes_make_up_the_batch_and_every_process_has_equally_many(costs, accumulate, processes):
    batch = np.arange(100, 100 + len(costs))
    shares = [divide_batch(batch, costs, accumulate, rank, processes) for rank in range(processes)]
    assert len({len(own) for own in shares}) == 1
    assert 1 <= len(shares[0]) <= accumulate
    sizes = [len(share) for own in shares for share in own]
    assert max(sizes) - min(sizes) <= 1
    images = [sum(len(share) for share in own) for own in shares]
    assert max(images) - min(images) <= 1
    assert sorted(np.concatenate([share for own in shares for share in own])) == batch.tolist()
    # Only the last one may be empty, so that no process leaves the others waiting in between.
    assert all(len(share) for own in shares for share in own[:-1])
    again = [divide_batch(batch, costs, accumulate, rank, processes) for rank in range(processes)]
    assert all(
        np.array_equal(*pair) for own, same in zip(shares, again, strict=True) for pair in zip(own, same, strict=True)
    )


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
