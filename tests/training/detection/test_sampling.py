"""Images with rare objects are repeated."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.detection.labels import Boxes, Labels
from training.detection.sampling import COMMON_SHARE, MAX_REPEAT, draw_epoch, repeat_factors


def labels_of(*classes: list[tuple[int, float]]) -> tuple[Labels, list[str]]:
    """Photographs with boxes of classes, each with a score."""
    labels = Labels(("person", "toaster"))
    for index, found in enumerate(classes):
        ids, scores = [class_id for class_id, _ in found], [score for _, score in found]
        boxes = np.tile(np.array([[0.1, 0.1, 0.9, 0.9]], np.float32), (len(found), 1))
        labels.boxes[str(index)] = Boxes(boxes, np.array(ids, np.int64), np.array(scores, np.float32))
    return labels, list(labels.boxes)


def test_a_photograph_is_repeated_for_the_rarest_class_in_it() -> None:
    labels, images = labels_of(*[[(0, 1.0)]] * 399, [(0, 1.0), (1, 1.0)])
    factors = repeat_factors(labels, images)
    assert np.allclose(factors[:-1], 1.0)
    assert np.isclose(factors[-1], np.sqrt(COMMON_SHARE / (1 / 400)))


def test_an_uncertain_box_repeats_its_photograph_less() -> None:
    labels, images = labels_of(*[[(0, 1.0)]] * 398, [(1, 0.9)], [(1, 0.2)])
    *_, sure, unsure = repeat_factors(labels, images)
    assert 1 < unsure < sure <= MAX_REPEAT


def test_a_photograph_without_boxes_is_not_repeated() -> None:
    labels, images = labels_of([], [(0, 1.0)])
    assert repeat_factors(labels, images)[0] == 1.0


def test_photographs_without_labels_are_not_repeated_and_do_not_count_for_the_shares() -> None:
    labels, images = labels_of(*[[(0, 1.0)]] * 399, [(0, 1.0), (1, 1.0)])
    factors = repeat_factors(labels, [*images, "unlabelled", "another"])
    assert np.array_equal(factors[:-2], repeat_factors(labels, images))
    assert factors[-2:].tolist() == [1.0, 1.0]


@given(st.lists(st.floats(1.0, MAX_REPEAT), min_size=1, max_size=50), st.integers(0, 2**32))
def test_an_epoch_has_each_photograph_as_often_as_its_factor_rounded_up_or_down(
    factors: list[float], seed: int
) -> None:
    order = draw_epoch(np.array(factors), np.random.default_rng(seed))
    times = np.bincount(order, minlength=len(factors))
    assert np.all((times >= np.floor(factors)) & (times <= np.ceil(factors)))
