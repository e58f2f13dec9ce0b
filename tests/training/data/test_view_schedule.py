"""The views of an epoch depend on seed, phase, epoch and image alone; how many are new, and which are used again."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.configs.schema import PhaseConfig
from training.data.view_schedule import ViewSchedule, whole_photographs

IMAGES = 200
CROPS = PhaseConfig("crops", 9, 1e-4, crop=0.6)
CACHED = replace(CROPS, cached_views=3, refresh=0.25)
PHOTOGRAPHS = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("phase", [CROPS, CACHED, replace(CROPS, crop=1.0)])
def test_the_views_of_an_epoch_depend_on_seed_phase_and_epoch_alone(phase: PhaseConfig) -> None:
    def views(phase: PhaseConfig, seed: int, epoch: int) -> tuple[list[int], bytes]:
        schedule = ViewSchedule(IMAGES, phase, seed)
        found = schedule.epoch(epoch)
        frames = schedule.cut(PHOTOGRAPHS, found.select(np.array([5, 9, 14, 77])))
        return [*found.slots.tolist(), *found.versions.tolist()], frames.tobytes()

    schedule = ViewSchedule(IMAGES, phase, 3)
    for epoch in (4, 0, 2):
        schedule.epoch(epoch)
    assert schedule.epoch(3).versions.tolist() == ViewSchedule(IMAGES, phase, 3).epoch(3).versions.tolist()
    assert views(phase, 3, 2) == views(phase, 3, 2)
    others = [views(phase, 4, 2), views(replace(phase, name="other"), 3, 2), views(phase, 3, 1)]
    assert views(phase, 3, 2) not in others


def test_a_view_does_not_depend_on_the_other_images_of_a_batch() -> None:
    schedule = ViewSchedule(IMAGES, CROPS, 1)
    views = schedule.epoch(0)
    together = schedule.cut(PHOTOGRAPHS, views.select(np.array([1, 2, 3, 4])))
    alone = schedule.cut(PHOTOGRAPHS[2:3], views.select(np.array([3])))
    np.testing.assert_array_equal(together[2:3], alone)


@given(cached=st.integers(1, 5), refresh=st.floats(0, 1), images=st.integers(1, 30), epochs=st.integers(1, 8))
def test_an_epoch_has_a_share_of_new_views_and_views_that_earlier_epochs_had(
    cached: int, refresh: float, images: int, epochs: int
) -> None:
    schedule = ViewSchedule(images, replace(CROPS, cached_views=cached, refresh=refresh), 7)
    kept: list[dict[int, int]] = [{} for _ in range(images)]
    for epoch in range(epochs):
        views = schedule.epoch(epoch)
        new = views.versions == epoch + 1
        assert new.sum() == (round(refresh * images) if epoch else images)
        for image, slot, version in zip(*views, strict=True):
            assert 0 <= slot < cached
            if version == epoch + 1:
                oldest = min(kept[image], key=kept[image].__getitem__) if len(kept[image]) == cached else None
                assert slot == (len(kept[image]) if oldest is None else oldest)
                kept[image][slot] = version
            assert kept[image][slot] == version


def test_without_kept_views_every_epoch_has_new_ones() -> None:
    schedule = ViewSchedule(IMAGES, CROPS, 1)
    assert schedule.slots == 0
    for epoch in range(3):
        assert set(schedule.epoch(epoch).versions) == {epoch + 1}
    views = [schedule.cut(PHOTOGRAPHS, schedule.epoch(epoch).select(np.arange(4))) for epoch in range(2)]
    assert not np.array_equal(*views)


def test_without_crops_an_image_is_mirrored_in_half_of_the_epochs() -> None:
    schedule = ViewSchedule(IMAGES, replace(CROPS, crop=1.0), 1)
    epochs = [schedule.epoch(epoch) for epoch in range(10)]
    mirrored = np.stack([views.slots for views in epochs])
    assert schedule.slots == 2
    assert 0.45 < mirrored.mean() < 0.55
    assert 0 < mirrored.mean(axis=0).max() <= 1
    assert all(set(views.versions) == {1} for views in epochs)
    four = epochs[0].select(np.arange(4))
    expected = [frame[:, ::-1] if slot else frame for frame, slot in zip(PHOTOGRAPHS, four.slots, strict=True)]
    np.testing.assert_array_equal(schedule.cut(PHOTOGRAPHS, four), np.stack(expected))


def test_without_flips_nothing_is_mirrored() -> None:
    whole = ViewSchedule(IMAGES, replace(CROPS, crop=1.0, flip=False), 1)
    assert whole.slots == 1
    assert not whole.epoch(5).slots.any()
    first = whole_photographs(np.arange(4))
    np.testing.assert_array_equal(whole.cut(PHOTOGRAPHS, first), PHOTOGRAPHS)
