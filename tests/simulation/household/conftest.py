"""Scenes and captioned frames that several tests share."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from simulation.household.layout.random_scene import random_scene
from simulation.household.scene import Scene
from tests.simulation.household.captioned_frames import CaptionedFrame, captioned_frames


@pytest.fixture(scope="session")
def six_sequences() -> list[list[CaptionedFrame]]:
    """Frames of sequences 0 to 5 of seed 0, which have every kind of room."""
    return [captioned_frames(number, 0) for number in range(6)]


@pytest.fixture(scope="session")
def scene_of() -> Callable[[str, int], Scene]:
    """A function from a kind of room and a seed to a scene by day; each scene is built once."""
    return cache(lambda kind, seed: random_scene(np.random.default_rng(seed), kind, day=True))
