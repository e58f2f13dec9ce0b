"""Random views of photographs, and the places of boxes in them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.data.augmentation import View, image_generators, random_view

SIDE = 224
"""Width and height of the photographs, pixels."""


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_transformed_box_encloses_the_same_pixels_in_the_view(seed: int, flip: bool) -> None:
    random = np.random.default_rng(seed)
    left, top = random.integers(40, 100, 2)
    right, bottom = random.integers(120, 180, 2)
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    image[top:bottom, left:right] = 255
    seen, view = random_view(image, flip, 0.7, random)
    boxes, shares = view.transform_boxes(np.array([[left, top, right, bottom]], np.float32) / SIDE)
    rows, columns = np.nonzero(seen[..., 0] > 127)
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(boxes[0] * SIDE, found, atol=2.5)
    assert 0 < shares[0] <= 1.0001


def test_boxes_are_clipped_to_the_view_with_the_share_of_their_area_that_is_inside() -> None:
    view = View(0.5, 0.0, 1.0, 1.0, flip=False)
    boxes, shares = view.transform_boxes(np.array([[0.25, 0, 0.75, 1], [0.5, 0, 1, 1], [0, 0, 0.25, 1]], np.float32))
    np.testing.assert_allclose(boxes[:2], [[0, 0, 0.5, 1], [0, 0, 1, 1]], atol=1e-6)
    np.testing.assert_allclose(shares, [0.5, 1, 0], atol=1e-6)


def test_a_mirrored_view_mirrors_boxes() -> None:
    boxes, _ = View(0, 0, 1, 1, flip=True).transform_boxes(np.array([[0.1, 0.2, 0.4, 0.6]], np.float32))
    np.testing.assert_allclose(boxes, [[0.6, 0.2, 0.9, 0.6]], atol=1e-6)


def test_a_share_of_1_keeps_the_whole_photograph() -> None:
    image = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    same, view = random_view(image, False, 1.0, np.random.default_rng(1))
    mirrored, _ = random_view(image, True, 1.0, np.random.default_rng(1))
    np.testing.assert_array_equal(same, image)
    np.testing.assert_array_equal(mirrored, image[:, ::-1])
    assert view == (0, 0, 1, 1, False)


def test_the_view_of_an_image_does_not_depend_on_the_other_images_of_the_batch() -> None:
    alone = image_generators(np.random.default_rng(5), np.array([7]))[0].random()
    in_batch = [generator.random() for generator in image_generators(np.random.default_rng(5), np.array([3, 7, 9]))]
    assert in_batch[1] == alone
    assert len(set(in_batch)) == 3
    assert image_generators(np.random.default_rng(6), np.array([7]))[0].random() != alone
