"""A furnished room: its walls, openings and light, and the pose of every object. Metres, z up.

The floor is the rectangle from (0, 0) to (width, depth); +y is north.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.household.materials import RGB, Material
from simulation.household.mesh import ObjectMesh, Points, SupportSurface, rotate_z


@dataclass(frozen=True)
class ObjectPose:
    """Position and heading of an object in the room."""

    x: float
    """Metres, as are ``y`` and ``z``."""
    y: float
    z: float = 0.0
    yaw: float = 0.0
    """Rotation about z in radians, counter-clockwise seen from above."""

    @property
    def position(self) -> NDArray[np.float64]:
        """x, y and z in metres, (3,)."""
        return np.array([self.x, self.y, self.z])

    def to_world(self, points: Points) -> Points:
        """Transform points (n, 3) from the object's frame to the room's."""
        return rotate_z(points, self.yaw) + self.position


@dataclass(frozen=True)
class OrientedBoxes:
    """Boxes of one object, turned about z by the same angle; metres in the room's frame."""

    centres: NDArray[np.float64]
    """(n, 3)."""
    half_sizes: NDArray[np.float64]
    """Half the extents along the turned axes, (n, 3)."""
    yaw: float
    """Radians."""

    @classmethod
    def from_bounds(cls, bounds: NDArray[np.float64], pose: ObjectPose) -> "OrientedBoxes":
        """Place boxes given by their minimum and maximum corners (n, 2, 3) in the object's frame."""
        return cls(pose.to_world(bounds.mean(axis=1)), (bounds[:, 1] - bounds[:, 0]) / 2, pose.yaw)

    def axis_aligned_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the minimum and the maximum x, y, z of all boxes along the room's axes, (3,) each."""
        cos, sin = abs(np.cos(self.yaw)), abs(np.sin(self.yaw))
        reach = np.column_stack(
            [
                cos * self.half_sizes[:, 0] + sin * self.half_sizes[:, 1],
                sin * self.half_sizes[:, 0] + cos * self.half_sizes[:, 1],
                self.half_sizes[:, 2],
            ]
        )
        return (self.centres - reach).min(axis=0), (self.centres + reach).max(axis=0)

    def penetration_depth(self, other: "OrientedBoxes") -> float:
        """Return the largest depth in metres by which a box intersects a box of ``other``; 0 or less if none does.

        Separating axes: z and the two horizontal axes of either object.
        """
        offsets = other.centres[None] - self.centres[:, None]
        depth = self.half_sizes[:, None, 2] + other.half_sizes[None, :, 2] - np.abs(offsets[..., 2])
        turn = other.yaw - self.yaw
        cos, sin = abs(np.cos(turn)), abs(np.sin(turn))
        for first, second, yaw in (
            (self.half_sizes[:, None], other.half_sizes[None], self.yaw),
            (other.half_sizes[None], self.half_sizes[:, None], other.yaw),
        ):
            along = offsets[..., 0] * np.cos(yaw) + offsets[..., 1] * np.sin(yaw)
            across = -offsets[..., 0] * np.sin(yaw) + offsets[..., 1] * np.cos(yaw)
            depth = np.minimum(depth, first[..., 0] + cos * second[..., 0] + sin * second[..., 1] - np.abs(along))
            depth = np.minimum(depth, first[..., 1] + sin * second[..., 0] + cos * second[..., 1] - np.abs(across))
        return float(depth.max())


@dataclass(frozen=True)
class Lighting:
    """Light sources of a scene; colours are sRGB, 0 to 1."""

    day: bool
    sky: RGB
    sky_strength: float
    """Radiance of the sky in watts per square metre and steradian."""
    sun_strength: float
    """Irradiance by the sun in watts per square metre; 0 on a cloudy day and at night."""
    sun_elevation: float
    """Angle above the horizon in radians."""
    sun_azimuth: float
    """Angle from north (+y) towards east in radians."""
    lamps_on: bool
    """Whether the ceiling lamps are on."""
    lamp_tint: RGB
    lamp_strength: float
    """Radiance of a ceiling lamp's surface in watts per square metre and steradian."""


def random_daylight(rng: np.random.Generator) -> Lighting:
    """Sample a clear or cloudy day; the ceiling lamps are on in a quarter of the scenes."""
    cloudy = rng.random() < 0.45
    sky = (0.86, 0.90, 0.95) if cloudy else (0.62, 0.78, 0.98)
    return Lighting(
        day=True,
        sky=sky,
        sky_strength=float(rng.uniform(9, 14) if cloudy else rng.uniform(7, 11)),
        sun_strength=0.0 if cloudy else float(rng.uniform(25, 50)),
        sun_elevation=float(rng.uniform(0.45, 1.0)),
        sun_azimuth=float(rng.uniform(0, 2 * np.pi)),
        lamps_on=bool(rng.random() < 0.25),
        lamp_tint=_random_lamp_tint(rng),
        lamp_strength=float(rng.uniform(25, 40)),
    )


def random_night_lighting(rng: np.random.Generator) -> Lighting:
    """Sample a night: the ceiling lamps are on and the sky is almost black."""
    return Lighting(
        day=False,
        sky=(0.10, 0.13, 0.25),
        sky_strength=0.02,
        sun_strength=0.0,
        sun_elevation=0.5,
        sun_azimuth=0.0,
        lamps_on=True,
        lamp_tint=_random_lamp_tint(rng),
        lamp_strength=float(rng.uniform(25, 40)),
    )


def _random_lamp_tint(rng: np.random.Generator) -> RGB:
    """Sample a white between that of a warm bulb and that of a neutral tube."""
    warmth = float(rng.uniform(0, 1))
    return (1.0, 0.96 - 0.13 * warmth, 0.90 - 0.30 * warmth)


Wall = Literal["north", "west", "south", "east"]
WALLS: tuple[Wall, ...] = ("north", "west", "south", "east")
WALL_YAW: dict[Wall, float] = {"north": 0.0, "west": np.pi / 2, "south": np.pi, "east": -np.pi / 2}
"""Yaw in radians of an object whose back (+y) is against the wall."""
WALL_THICKNESS = 0.16
"""Metres."""

Placement = Literal["on", "wall", "floor"]
"""How an object is held: by another object, by a wall or the ceiling, or by the floor."""


@dataclass(frozen=True)
class Opening:
    """A hole in a wall for a window or a door, in metres."""

    wall: Wall
    along: float
    """Centre, measured along the wall from the wall's centre; positive to the right seen from inside the room."""
    width: float
    bottom: float
    """Height of the lower edge above the floor; 0 for a door."""
    top: float
    """Height of the upper edge above the floor."""

    @property
    def is_door(self) -> bool:
        return self.bottom == 0


@dataclass(frozen=True)
class Room:
    """Walls, floor and ceiling of a scene; sizes in metres."""

    kind: str
    """Name in captions, such as ``kitchen``."""
    width: float
    """Extent along x."""
    depth: float
    """Extent along y."""
    height: float
    wall: Material
    wall_colour: str
    """Name of the walls' colour in captions."""
    floor: Material
    floor_noun: str
    """Name of the floor in captions: ``wooden floor``, ``tiled floor`` or ``carpet``."""
    wall_tiles: Material | None = None
    """Tiles of a kitchen's or bathroom's walls."""
    openings: tuple[Opening, ...] = ()

    def wall_length(self, wall: Wall) -> float:
        """Return the length of a wall in metres."""
        return self.width if wall in ("north", "south") else self.depth

    def floor_point(self, wall: Wall, along: float, distance: float) -> tuple[float, float]:
        """Return the x and y of a point given relative to a wall.

        Args:
            wall: wall of reference.
            along: metres from the wall's centre along it, positive to the right seen from inside the room.
            distance: metres from the wall into the room.
        """
        local = rotate_z(np.array([[along, -distance, 0.0]]), WALL_YAW[wall])[0]
        centre = {
            "north": (self.width / 2, self.depth),
            "south": (self.width / 2, 0.0),
            "west": (0.0, self.depth / 2),
            "east": (self.width, self.depth / 2),
        }[wall]
        return centre[0] + float(local[0]), centre[1] + float(local[1])


@dataclass(frozen=True, eq=False)
class PlacedObject:
    """An object at its place in the room."""

    id: int
    """Instance number from 1, the same in every frame: the value in instance masks."""
    mesh: ObjectMesh
    pose: ObjectPose
    support: int | None = None
    """Instance number of the object that carries it; None on the floor, a wall or the ceiling."""
    placement: Placement = "on"

    @property
    def centre(self) -> NDArray[np.float64]:
        """Centre of its bounding box in the room's frame, (3,)."""
        return self.pose.to_world(self.mesh.bounds.mean(axis=0, keepdims=True))[0]

    @property
    def surfaces(self) -> tuple["PlacedSurface", ...]:
        """Surfaces on which other objects can stand."""
        return tuple(PlacedSurface(self, surface) for surface in self.mesh.surfaces)

    def oriented_boxes(self) -> OrientedBoxes:
        """Return the bounding boxes of its parts in the room's frame."""
        return OrientedBoxes.from_bounds(self.mesh.part_bounds, self.pose)


class PlacedSurface(NamedTuple):
    """A surface of an object in the room."""

    carrier: PlacedObject
    surface: SupportSurface


@dataclass(frozen=True)
class Scene:
    """A room, its objects and its light."""

    room: Room
    objects: tuple[PlacedObject, ...]
    """In the order of their instance numbers, from 1."""
    lighting: Lighting

    def object_by_id(self, number: int) -> PlacedObject:
        """Return the object with an instance number."""
        return self.objects[number - 1]
