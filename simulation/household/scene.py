"""A furnished room: its walls and openings, and the pose of every object. Metres, z up.

The floor is the rectangle from (0, 0) to (width, depth); +y is north.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.household.lighting import Lighting
from simulation.household.materials import Material
from simulation.household.mesh import rotate_z
from simulation.household.object_mesh import ObjectMesh, SupportSurface
from simulation.household.oriented_boxes import ObjectPose, OrientedBoxes

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
