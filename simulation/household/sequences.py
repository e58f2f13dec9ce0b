"""Plans of sequences: the seed and the sequence's number determine room, lighting, camera path and camera."""

from dataclasses import asdict, dataclass

import numpy as np

from simulation.household.camera import Camera, CameraPose, CameraResponse, random_response
from simulation.household.camera_path import NoPathError, camera_path
from simulation.household.errors import HouseholdError
from simulation.household.layout.random_scene import ROOM_KINDS, random_scene
from simulation.household.scene import Scene

CAMERA_HEIGHTS = (0.6, 1.0, 1.4)
"""Metres above the floor: mast of a vacuum cleaner, head of a small robot, head of a person-sized robot."""

LAYOUT_VERSION = 1
"""Increase it when a seed gives other scenes, so that a folder with the old ones is not continued with the new ones."""

_MAX_ATTEMPTS = 10
"""Rooms that are tried before a sequence is given up."""

# Streams of random numbers, so that a change to one leaves the others as they are.
_SCENE, _PATH, _RESPONSE, _NOISE, _CAPTIONS, _ROOM_ORDER = range(6)


@dataclass(frozen=True)
class RenderSettings:
    """Settings that determine every pixel.

    Raises:
        HouseholdError: a value is out of range.
    """

    seed: int = 0
    frames: int = 500
    """Frames of a sequence."""
    width: int = 320
    """Pixels, as is ``height``."""
    height: int = 240
    samples: int = 16
    """Light paths traced for each pixel."""
    step: float = 0.03
    """Metres that the robot drives from frame to frame."""

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("frames", 1), ("width", 32), ("height", 32), ("samples", 1)):
            if getattr(self, name) < least:
                raise HouseholdError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not self.step > 0:
            raise HouseholdError(f"step must be more than 0 metres, not {self.step}")

    def document(self) -> dict[str, object]:
        """Return the content of ``household.json``."""
        return {"layout_version": LAYOUT_VERSION, **asdict(self)}

    @property
    def camera(self) -> Camera:
        return Camera(self.width, self.height)


@dataclass(frozen=True)
class SequencePlan:
    """A sequence before it is rendered."""

    number: int
    scene: Scene
    poses: tuple[CameraPose, ...]
    """Pose of the camera in each frame."""
    response: CameraResponse


def plan_sequence(settings: RenderSettings, number: int) -> SequencePlan:
    """Plan a sequence; six in a row have every kind of room, every camera height and both kinds of light.

    Raises:
        HouseholdError: no room was found that the robot can drive through.
    """
    block, place = divmod(number, len(ROOM_KINDS))
    kind = ROOM_KINDS[_random_stream(settings, _ROOM_ORDER, block).permutation(len(ROOM_KINDS))[place]]
    day, height = number % 2 == 0, CAMERA_HEIGHTS[number % len(CAMERA_HEIGHTS)]
    response = random_response(_random_stream(settings, _RESPONSE, number))
    for attempt in range(_MAX_ATTEMPTS):
        scene = random_scene(_random_stream(settings, _SCENE, number, attempt), kind, day=day)
        path_rng = _random_stream(settings, _PATH, number)
        try:
            poses = camera_path(scene, path_rng, frames=settings.frames, step=settings.step, height=height)
        except NoPathError:
            continue
        return SequencePlan(number, scene, tuple(poses), response)
    raise HouseholdError(f"no room of {_MAX_ATTEMPTS} for sequence {number} can be driven through; use another --seed")


def noise_generator(settings: RenderSettings, number: int, frame: int) -> np.random.Generator:
    """Return the source of a frame's sensor noise."""
    return _random_stream(settings, _NOISE, number, frame)


def caption_generator(settings: RenderSettings, number: int, frame: int) -> np.random.Generator:
    """Return the source of the random choices in a frame's captions."""
    return _random_stream(settings, _CAPTIONS, number, frame)


def _random_stream(settings: RenderSettings, *key: int) -> np.random.Generator:
    return np.random.default_rng([settings.seed, *key])
