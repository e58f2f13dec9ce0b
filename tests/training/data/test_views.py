"""Views of photographs in an epoch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.configs.schema import PhaseConfig
from training.data.views import EpochViews, random_view

SIDE = 224
"""Width and height of the photographs, pixels."""


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_view_enlarges_a_part_of_the_photograph(seed, flip):
    columns, rows = np.meshgrid(np.arange(SIDE, dtype=np.uint8), np.arange(SIDE, dtype=np.uint8))
    image = np.stack([columns, rows, columns], axis=2)
    seen = random_view(image, flip, 0.7, np.random.default_rng(seed)).astype(int)
    assert seen.shape == image.shape
    across = seen[0, :, 0][::-1] if flip else seen[0, :, 0]
    for places in (across, seen[:, 0, 1]):
        assert (np.diff(places) >= 0).all(), "in their order"
        assert 0.7 * SIDE - 3 <= places[-1] - places[0] + 1 <= SIDE


IMAGES = 200
CROPS = PhaseConfig("crops", 9, 1e-4, crop=0.6)
WHOLE = replace(CROPS, crop=1.0)
PHOTOGRAPHS = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
FOUR = np.array([5, 9, 14, 77])


@pytest.mark.parametrize("phase", [CROPS, WHOLE])
def test_the_views_of_an_epoch_depend_on_seed_phase_and_epoch_alone(phase):
    def views(phase, seed, epoch):
        found = EpochViews(IMAGES, phase, seed, epoch)
        return found.mirrored.tolist(), found.cut(PHOTOGRAPHS, FOUR).tobytes()

    assert views(phase, 3, 2) == views(phase, 3, 2)
    others = [views(phase, 4, 2), views(replace(phase, name="other"), 3, 2), views(phase, 3, 1)]
    assert views(phase, 3, 2) not in others


def test_without_crops_an_image_is_mirrored_in_half_of_the_epochs():
    epochs = [EpochViews(IMAGES, WHOLE, 1, epoch) for epoch in range(10)]
    mirrored = np.stack([views.mirrored for views in epochs])
    assert 0.45 < mirrored.mean() < 0.55
    pairs = zip(PHOTOGRAPHS, mirrored[0][FOUR], strict=True)
    expected = [frame[:, ::-1] if is_mirrored else frame for frame, is_mirrored in pairs]
    np.testing.assert_array_equal(epochs[0].cut(PHOTOGRAPHS, FOUR), np.stack(expected))


def test_a_phase_degrades_its_share_of_the_views():
    phase = replace(WHOLE, degrade=0.5, flip=False)
    whole = np.repeat(PHOTOGRAPHS[:1], 200, axis=0)
    changed = (EpochViews(IMAGES, phase, 1, 0).cut(whole, np.arange(200)) != whole).any(axis=(1, 2, 3))
    assert 60 < changed.sum() < 140
    assert not phase.has_fixed_views
