"""Exposure, blur and noise of the simulated camera."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.household.camera_response import CameraResponse, photograph, random_response


def light(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(1.0, 0.3, (24, 32, 3)).astype(np.float32)


@settings(max_examples=20)
@given(stops=st.floats(-6, 6))
def test_automatic_exposure_makes_a_room_as_bright_by_night_as_by_day(stops: float) -> None:
    usual = photograph(light(), CameraResponse(), np.random.default_rng(0))
    other = photograph(light() * np.float32(2**stops), CameraResponse(), np.random.default_rng(0))
    assert np.abs(usual.astype(int) - other).max() <= 4


def test_more_exposure_makes_the_photograph_brighter_and_a_gain_of_red_makes_it_redder() -> None:
    usual, bright, red = (
        photograph(light(), response, np.random.default_rng(0)).mean(axis=(0, 1))
        for response in (CameraResponse(), CameraResponse(exposure=1), CameraResponse(red=1.3))
    )
    assert (bright > usual).all()
    # BGR.
    assert red[2] > usual[2]
    assert np.isclose(red[0], usual[0], atol=1)


def test_blur_removes_detail_and_noise_adds_it() -> None:
    def detail(response: CameraResponse) -> float:
        return float(
            np.abs(np.diff(photograph(light(), response, np.random.default_rng(0)).astype(float), axis=1)).mean()
        )

    assert detail(CameraResponse(blur=1.5)) < 0.6 * detail(CameraResponse())
    flat = np.full((24, 32, 3), 0.2, np.float32)
    assert photograph(flat, CameraResponse(noise=0.03), np.random.default_rng(0)).std() > 2
    assert photograph(flat, CameraResponse(), np.random.default_rng(0)).std() == 0


def test_photograph_follows_from_its_seed_and_cameras_differ() -> None:
    responses = {random_response(np.random.default_rng(seed)) for seed in range(20)}
    assert len(responses) == 20
    response = responses.pop()
    first, again = (photograph(light(), response, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, again)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_random_camera_gives_a_usable_photograph(seed: int) -> None:
    image = photograph(light(), random_response(np.random.default_rng(seed)), np.random.default_rng(0))
    assert image.dtype == np.uint8
    assert 40 < image.mean() < 215
