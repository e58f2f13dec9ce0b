import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from training.datagen.household.photometric import Look, develop, random_look


def light(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(1.0, 0.3, (24, 32, 3)).astype(np.float32)


@settings(max_examples=20)
@given(stops=st.floats(-6, 6))
def test_automatic_exposure_makes_a_room_as_bright_by_night_as_by_day(stops: float) -> None:
    usual = develop(light(), Look(), np.random.default_rng(0))
    other = develop(light() * np.float32(2**stops), Look(), np.random.default_rng(0))
    assert np.abs(usual.astype(int) - other).max() <= 4


def test_more_exposure_is_brighter_and_gains_tint() -> None:
    usual, bright, red = (
        develop(light(), look, np.random.default_rng(0)).mean(axis=(0, 1))
        for look in (Look(), Look(exposure=1), Look(red=1.3))
    )
    assert (bright > usual).all()
    # BGR.
    assert red[2] > usual[2]
    assert np.isclose(red[0], usual[0], atol=1)


def test_blur_takes_detail_and_noise_adds_it() -> None:
    def detail(look: Look) -> float:
        return float(np.abs(np.diff(develop(light(), look, np.random.default_rng(0)).astype(float), axis=1)).mean())

    assert detail(Look(blur=1.5)) < 0.6 * detail(Look())
    flat = np.full((24, 32, 3), 0.2, np.float32)
    assert develop(flat, Look(noise=0.03), np.random.default_rng(0)).std() > 2
    assert develop(flat, Look(), np.random.default_rng(0)).std() == 0


def test_frame_follows_from_its_seed_and_looks_differ() -> None:
    looks = {random_look(np.random.default_rng(seed)) for seed in range(20)}
    assert len(looks) == 20
    look = looks.pop()
    first, again = (develop(light(), look, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, again)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_random_look_ruins_the_frame(seed: int) -> None:
    image = develop(light(), random_look(np.random.default_rng(seed)), np.random.default_rng(0))
    assert image.dtype == np.uint8
    assert 40 < image.mean() < 215
