"""Placing of objects in a room so that none intersects another."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulation.household.mesh import ObjectMesh, rotate_z
from simulation.household.scene import (
    WALL_YAW,
    ObjectPose,
    Opening,
    OrientedBoxes,
    PlacedObject,
    PlacedSurface,
    Placement,
    Room,
    Wall,
)

TOLERANCE = 0.001
"""Metres by which two boxes may intersect and still count as apart."""
CLEARANCE = TOLERANCE / 2
"""Metres between an object and the surface that carries it."""
_WALL_TRIES, _SURFACE_TRIES = 25, 12
"""Random places that are tried for an object, at walls and on a surface."""


@dataclass
class SceneBuilder:
    """A room that is being furnished. Every method that places an object returns None if the object does not fit."""

    room: Room
    rng: np.random.Generator
    objects: list[PlacedObject] = field(default_factory=list)
    reserved: list[OrientedBoxes] = field(default_factory=list)
    """Space in front of doors and windows that stays free."""
    _boxes: list[OrientedBoxes] = field(default_factory=list)
    _bounds: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2, 3)))

    def place(
        self,
        mesh: ObjectMesh,
        pose: ObjectPose,
        *,
        support: int | None = None,
        placement: Placement = "floor",
        check_room: bool = True,
    ) -> PlacedObject | None:
        """Place an object at a pose.

        Args:
            mesh: the object.
            pose: where.
            support: instance number of the object that carries it.
            placement: what holds it.
            check_room: whether it must be inside the room and outside reserved space. Doors and windows need neither.
        """
        placed = PlacedObject(len(self.objects) + 1, mesh, pose, support, placement)
        boxes = placed.oriented_boxes()
        if not self._fits(boxes, check_room=check_room):
            return None
        self.objects.append(placed)
        self._boxes.append(boxes)
        self._bounds = np.concatenate([self._bounds, np.stack(boxes.axis_aligned_bounds())[None]])
        return placed

    def reserve_in_front(self, opening: Opening, distance: float) -> None:
        """Keep the space in front of an opening free, up to ``distance`` metres from the wall."""
        x, y = self.room.floor_point(opening.wall, opening.along, distance / 2)
        half = opening.width / 2
        bounds = np.array([[[-half, -distance / 2, opening.bottom], [half, distance / 2, opening.top]]])
        self.reserved.append(OrientedBoxes.from_bounds(bounds, ObjectPose(x, y, 0.0, WALL_YAW[opening.wall])))

    def place_at_wall(
        self, mesh: ObjectMesh, wall: Wall, along: float, *, gap: float = 0.012, z: float = 0.0
    ) -> PlacedObject | None:
        """Place an object with its back to a wall.

        Args:
            mesh: the object.
            wall: the wall behind it.
            along: metres from the wall's centre, see ``Room.floor_point``.
            gap: metres between the wall and the object.
            z: metres above the floor; an object above it hangs on the wall.
        """
        x, y = self.room.floor_point(wall, along, float(mesh.bounds[1, 1]) + gap)
        return self.place(mesh, ObjectPose(x, y, z, WALL_YAW[wall]), placement="wall" if z > 0 else "floor")

    def place_along_walls(
        self, mesh: ObjectMesh, walls: Sequence[Wall], *, z: float = 0.0, gap: float = 0.012
    ) -> PlacedObject | None:
        """Place an object with its back to a random one of the walls at a random place, often in a corner."""
        width = float(mesh.size[0])
        for _ in range(_WALL_TRIES):
            wall = walls[int(self.rng.integers(len(walls)))]
            spare = self.room.wall_length(wall) / 2 - width / 2 - 0.03
            if spare <= 0:
                continue
            corner = self.rng.random() < 0.4 and z == 0
            along = float(self.rng.choice([-1, 1])) * spare if corner else self.rng.uniform(-spare, spare)
            if placed := self.place_at_wall(mesh, wall, along, z=z, gap=gap):
                return placed
        return None

    def place_on(
        self, support: PlacedSurface, mesh: ObjectMesh, x: float, y: float, turn: float = 0.0
    ) -> PlacedObject | None:
        """Place an object with its centre at a point of a surface, unless it would hang over the edge.

        Args:
            support: the surface.
            mesh: the object.
            x: metres from the surface's centre to the right, in the frame of the surface's object.
            y: metres from the surface's centre to the back.
            turn: yaw in radians relative to the surface's object.
        """
        surface = support.surface
        if max(abs(x) - surface.half_width, abs(y) - surface.half_depth) > -float(min(mesh.size[:2])) / 2:
            return None
        centre = mesh.bounds.mean(axis=0)
        cos, sin = np.cos(turn), np.sin(turn)
        return self._stand_on(
            support,
            mesh,
            surface.x + x - cos * centre[0] + sin * centre[1],
            surface.y + y - sin * centre[0] - cos * centre[1],
            turn,
        )

    def place_on_fraction(
        self, support: PlacedSurface, mesh: ObjectMesh, u: float, v: float, turn: float = 0.0
    ) -> PlacedObject | None:
        """Place an object on a surface by fractions of the free play.

        Args:
            support: the surface.
            mesh: the object.
            u: -1 at the surface's left edge to 1 at its right edge.
            v: -1 at the surface's front edge to 1 at its back edge.
            turn: yaw in radians relative to the surface's object.
        """
        surface = support.surface
        corners = np.array([[x, y, 0] for x in mesh.bounds[:, 0] for y in mesh.bounds[:, 1]])
        outline = rotate_z(corners, turn)[:, :2]
        low, high = outline.min(axis=0), outline.max(axis=0)
        spare = np.array([surface.half_width, surface.half_depth]) - (high - low) / 2
        if (spare < 0).any():
            return None
        x, y = np.array([surface.x, surface.y]) + np.array([u, v]) * spare - (high + low) / 2
        return self._stand_on(support, mesh, x, y, turn)

    def scatter_on(self, support: PlacedSurface, mesh: ObjectMesh, *, turn: float) -> PlacedObject | None:
        """Place an object at a random point of a surface, turned by up to ``turn`` radians either way."""
        for _ in range(_SURFACE_TRIES):
            u, v = self.rng.uniform(-1, 1, 2)
            if placed := self.place_on_fraction(support, mesh, u, v, self.rng.uniform(-turn, turn)):
                return placed
        return None

    def _stand_on(
        self, support: PlacedSurface, mesh: ObjectMesh, x: float, y: float, turn: float
    ) -> PlacedObject | None:
        """Place an object whose origin is above (x, y) in the frame of the surface's object."""
        carrier, surface = support
        z = surface.z + CLEARANCE - float(mesh.bounds[0, 2])
        world_x, world_y, world_z = carrier.pose.to_world(np.array([[x, y, z]]))[0]
        pose = ObjectPose(world_x, world_y, world_z, carrier.pose.yaw + turn)
        # Plants on a sill reach into the window's opening, which is outside the room.
        return self.place(mesh, pose, support=carrier.id, placement="on", check_room=surface.kind != "sill")

    def _fits(self, boxes: OrientedBoxes, *, check_room: bool) -> bool:
        low, high = boxes.axis_aligned_bounds()
        if check_room:
            limits = np.array([self.room.width, self.room.depth, self.room.height])
            if (low < -TOLERANCE).any() or (high > limits + TOLERANCE).any():
                return False
            if any(boxes.penetration_depth(space) > TOLERANCE for space in self.reserved):
                return False
        near = (high > self._bounds[:, 0]).all(axis=1) & (low < self._bounds[:, 1]).all(axis=1)
        return all(boxes.penetration_depth(self._boxes[i]) <= TOLERANCE for i in np.flatnonzero(near))
