"""The assignment is the best one there is."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from smart_caption_ros.grounding import CoverageOptions
from smart_caption_ros.grounding.assignment import best_assignment

PROFITS = st.tuples(st.integers(0, 5), st.integers(0, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1, width=16) | st.just(0.0))
)


def brute_force(profits):
    """The highest sum of profits over all assignments of each line of the shorter side to one of the longer."""
    if profits.shape[0] > profits.shape[1]:
        profits = profits.T
    rows = range(profits.shape[0])
    return max(
        sum(profits[row, column] for row, column in zip(rows, columns, strict=True))
        for columns in permutations(range(profits.shape[1]), profits.shape[0])
    )


@given(PROFITS)
def test_no_assignment_is_better_than_the_one_found(profits):
    pairs = best_assignment(profits)
    assert sum(profits[pair] for pair in pairs) == pytest.approx(brute_force(profits))


@pytest.mark.parametrize("name", ["minimum_similarity", "support_similarity"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_similarity_outside_its_range_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must lie between 0 and 1"):
        CoverageOptions(**{name: value})
