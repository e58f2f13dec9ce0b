"""Which sequences there are: each one's room, light, camera and drive follow from the seed and its number alone."""

from dataclasses import asdict, dataclass

import numpy as np

from training.datagen.household.camera import Camera, Pose
from training.datagen.household.camera_path import TooFullError, drive
from training.datagen.household.errors import HouseholdError
from training.datagen.household.layout import ROOMS, furnish
from training.datagen.household.photometric import Look, random_look
from training.datagen.household.scene import Scene

CAMERA_HEIGHTS = (0.6, 1.0, 1.4)
"""Metres above the floor: a vacuum cleaner's mast, a small robot's and a person-sized robot's head."""

LAYOUT_VERSION = 1
"""Counts up when the same seed gives other scenes, so that a half-made root is never finished with other rooms."""

_ATTEMPTS = 10

# Streams of random numbers, so that a change to one leaves the others alone.
_SCENE, _DRIVE, _LOOK, _NOISE, _WORDS, _ORDER = range(6)


@dataclass(frozen=True)
class Settings:
    """What decides every pixel."""

    seed: int = 0
    frames: int = 500
    """A sequence."""
    width: int = 320
    height: int = 240
    samples: int = 16
    """Light paths a pixel."""
    step: float = 0.03
    """Metres that the robot drives from frame to frame."""

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("frames", 1), ("width", 32), ("height", 32), ("samples", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not self.step > 0:
            raise ValueError(f"step must be more than 0 metres, not {self.step}")

    def document(self) -> dict[str, object]:
        return {"layout_version": LAYOUT_VERSION, **asdict(self)}

    @property
    def camera(self) -> Camera:
        return Camera(self.width, self.height)


@dataclass(frozen=True)
class Sequence:
    """All about a sequence but its pixels."""

    number: int
    day: bool
    camera_height: float
    scene: Scene
    poses: tuple[Pose, ...]
    look: Look


def plan(settings: Settings, number: int) -> Sequence:
    """A sequence. Day and night alternate, heights go round by three; six in a row show each kind of room once."""
    block, place = divmod(number, len(ROOMS))
    kind = ROOMS[_stream(settings, _ORDER, block).permutation(len(ROOMS))[place]]
    # Another room at a height and light in each block, by the order above.
    day, height = number % 2 == 0, CAMERA_HEIGHTS[number % len(CAMERA_HEIGHTS)]
    look = random_look(_stream(settings, _LOOK, number))
    for attempt in range(_ATTEMPTS):
        scene = furnish(_stream(settings, _SCENE, number, attempt), kind, day=day)
        try:
            poses = drive(
                scene, _stream(settings, _DRIVE, number), frames=settings.frames, step=settings.step, height=height
            )
        except TooFullError:
            continue
        return Sequence(number, day, height, scene, tuple(poses), look)
    raise HouseholdError(f"no room of {_ATTEMPTS} for sequence {number} can be driven through; use another --seed")


def noise_of(settings: Settings, number: int, frame: int) -> np.random.Generator:
    """The random numbers of a frame's noise."""
    return _stream(settings, _NOISE, number, frame)


def words_of(settings: Settings, number: int, frame: int) -> np.random.Generator:
    """The random numbers of a frame's captions."""
    return _stream(settings, _WORDS, number, frame)


def _stream(settings: Settings, *place: int) -> np.random.Generator:
    return np.random.default_rng([settings.seed, *place])
