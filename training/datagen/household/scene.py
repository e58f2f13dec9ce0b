"""A furnished room: where everything stands, and that nothing stands in anything else. Metres, z up, no renderer.

The room's floor is the rectangle from (0, 0) to (width, depth); y points north.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from training.datagen.household.lighting import Lighting
from training.datagen.household.materials import Material
from training.datagen.household.mesh import Points, rotate_z
from training.datagen.household.shape import Shape, Surface

Wall = Literal["north", "west", "south", "east"]
WALLS: tuple[Wall, ...] = ("north", "west", "south", "east")
# Turns a thing's back (+y) to the wall.
YAW = {"north": 0.0, "west": np.pi / 2, "south": np.pi, "east": -np.pi / 2}

TOUCHING = 0.001
"""Metres that two parts may share without counting as an intersection."""


@dataclass(frozen=True)
class Opening:
    """A hole in a wall for a window or a door."""

    wall: Wall
    along: float
    """Where its middle is, in the wall's own direction: the x of a shape with its back to that wall."""
    width: float
    low: float
    high: float


@dataclass(frozen=True)
class Room:
    """The shell of a scene."""

    kind: str
    """What captions call it, such as ``kitchen``."""
    width: float
    depth: float
    height: float
    wall: Material
    wall_colour: str
    floor: Material
    floor_kind: str
    """What captions call the floor: ``wooden floor``, ``tiled floor``, ``carpet``."""
    tiled_wall: Material | None = None
    openings: tuple[Opening, ...] = ()

    def wall_length(self, wall: Wall) -> float:
        return self.width if wall in ("north", "south") else self.depth

    def to_wall(self, wall: Wall, along: float, away: float) -> tuple[float, float]:
        """The floor point ``along`` a wall from its middle (rightwards for who looks at it), ``away`` from it."""
        local = rotate_z(np.array([[along, -away, 0.0]]), YAW[wall])[0]
        middle = {
            "north": (self.width / 2, self.depth),
            "south": (self.width / 2, 0.0),
            "west": (0.0, self.depth / 2),
            "east": (self.width, self.depth / 2),
        }[wall]
        return middle[0] + float(local[0]), middle[1] + float(local[1])


@dataclass(frozen=True, eq=False)
class Item:
    """A shape in its place."""

    id: int
    """From 1, the same in every frame: the index in the rendered masks."""
    shape: Shape
    x: float
    y: float
    z: float
    yaw: float
    support: int | None = None
    """The item that it stands on; None: the floor, a wall or the ceiling."""
    pose: str = "on"
    """How it relates to its support or the room: ``on``, ``wall`` or ``floor``."""

    def to_world(self, points: Points) -> Points:
        return rotate_z(points, self.yaw) + np.array([self.x, self.y, self.z])

    @property
    def centre(self) -> NDArray[np.float64]:
        """(3,): the middle of its bounding box in the world."""
        return self.to_world(self.shape.bounds.mean(axis=0, keepdims=True))[0]

    def boxes(self) -> "Boxes":
        return Boxes.of(self.shape.boxes, self.x, self.y, self.z, self.yaw)


@dataclass(frozen=True)
class Boxes:
    """Upright boxes, turned about z together."""

    centres: NDArray[np.float64]
    """(n, 3) in the world."""
    halves: NDArray[np.float64]
    """(n, 3) half sizes along the turned axes."""
    yaw: float

    @classmethod
    def of(cls, bounds: NDArray[np.float64], x: float, y: float, z: float, yaw: float) -> "Boxes":
        centres = rotate_z(bounds.mean(axis=1), yaw) + np.array([x, y, z])
        return cls(centres, (bounds[:, 1] - bounds[:, 0]) / 2, yaw)

    def hull(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Smallest and largest x, y, z of all of them, along the world's axes."""
        cos, sin = abs(np.cos(self.yaw)), abs(np.sin(self.yaw))
        reach = np.column_stack(
            [
                cos * self.halves[:, 0] + sin * self.halves[:, 1],
                sin * self.halves[:, 0] + cos * self.halves[:, 1],
                self.halves[:, 2],
            ]
        )
        return (self.centres - reach).min(axis=0), (self.centres + reach).max(axis=0)

    def overlap(self, other: "Boxes") -> float:
        """How deep any of these boxes reaches into any of the others, in metres; 0 or less where they are apart."""
        apart = other.centres[None] - self.centres[:, None]
        depth = self.halves[:, None, 2] + other.halves[None, :, 2] - np.abs(apart[..., 2])
        turn = other.yaw - self.yaw
        cos, sin = abs(np.cos(turn)), abs(np.sin(turn))
        for mine, theirs, yaw in (
            (self.halves[:, None], other.halves[None], self.yaw),
            (other.halves[None], self.halves[:, None], other.yaw),
        ):
            along = apart[..., 0] * np.cos(yaw) + apart[..., 1] * np.sin(yaw)
            across = -apart[..., 0] * np.sin(yaw) + apart[..., 1] * np.cos(yaw)
            depth = np.minimum(depth, mine[..., 0] + cos * theirs[..., 0] + sin * theirs[..., 1] - np.abs(along))
            depth = np.minimum(depth, mine[..., 1] + sin * theirs[..., 0] + cos * theirs[..., 1] - np.abs(across))
        return float(depth.max())


@dataclass(frozen=True)
class Scene:
    """A room with everything in it."""

    room: Room
    items: tuple[Item, ...]
    lighting: Lighting

    def item(self, number: int) -> Item:
        return self.items[number - 1]


@dataclass
class Furnishing:
    """A scene while it is being furnished: accepts only what touches nothing else and stays inside the room."""

    room: Room
    rng: np.random.Generator
    items: list[Item] = field(default_factory=list)
    reserved: list[Boxes] = field(default_factory=list)
    """Where nothing may stand: in front of doors and windows."""
    _boxes: list[Boxes] = field(default_factory=list)
    _hulls: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2, 3)))

    def fits(self, boxes: Boxes, *, anywhere: bool = False) -> bool:
        """Whether boxes are inside the room and clear of all items; ``anywhere`` skips walls and reserved places."""
        low, high = boxes.hull()
        if not anywhere:
            limits = np.array([self.room.width, self.room.depth, self.room.height])
            if (low < -TOUCHING).any() or (high > limits + TOUCHING).any():
                return False
            if any(boxes.overlap(place) > TOUCHING for place in self.reserved):
                return False
        near = (high > self._hulls[:, 0]).all(axis=1) & (low < self._hulls[:, 1]).all(axis=1)
        return all(boxes.overlap(self._boxes[i]) <= TOUCHING for i in np.flatnonzero(near))

    def place(
        self,
        shape: Shape,
        x: float,
        y: float,
        z: float = 0.0,
        yaw: float = 0.0,
        *,
        support: int | None = None,
        pose: str = "floor",
        anywhere: bool = False,
    ) -> Item | None:
        """Put a shape somewhere if it fits."""
        item = Item(len(self.items) + 1, shape, float(x), float(y), float(z), float(yaw), support, pose)
        boxes = item.boxes()
        if not self.fits(boxes, anywhere=anywhere):
            return None
        self.items.append(item)
        self._boxes.append(boxes)
        self._hulls = np.concatenate([self._hulls, np.stack(boxes.hull())[None]])
        return item

    def reserve(self, wall: Wall, along: float, width: float, away: float, low: float, high: float) -> None:
        """Keep a place at a wall free."""
        x, y = self.room.to_wall(wall, along, away / 2)
        bounds = np.array([[[-width / 2, -away / 2, low], [width / 2, away / 2, high]]])
        self.reserved.append(Boxes.of(bounds, x, y, 0.0, YAW[wall]))

    def at_wall(
        self, shape: Shape, wall: Wall, along: float, *, gap: float = 0.012, z: float = 0.0, anywhere: bool = False
    ) -> Item | None:
        """Put a shape with its back to a wall."""
        x, y = self.room.to_wall(wall, along, float(shape.bounds[1, 1]) + gap)
        return self.place(shape, x, y, z, YAW[wall], pose="wall" if z > 0 else "floor", anywhere=anywhere)

    def along_wall(
        self, shape: Shape, walls: Sequence[Wall], *, z: float = 0.0, gap: float = 0.012, tries: int = 25
    ) -> Item | None:
        """Put a shape with its back to one of the walls, anywhere along it, often in a corner."""
        width = float(shape.size[0])
        for _ in range(tries):
            wall = walls[int(self.rng.integers(len(walls)))]
            spare = self.room.wall_length(wall) / 2 - width / 2 - 0.03
            if spare <= 0:
                continue
            corner = self.rng.random() < 0.4 and z == 0
            along = float(self.rng.choice([-1, 1])) * spare if corner else self.rng.uniform(-spare, spare)
            if item := self.at_wall(shape, wall, along, z=z, gap=gap):
                return item
        return None

    def on(self, carrier: Item, surface: Surface, shape: Shape, u: float, v: float, turn: float = 0.0) -> Item | None:
        """Put a shape on a surface at (u, v), -1 to 1 from its left to its right and from its front to its back."""
        corners = np.array([[x, y, 0] for x in shape.bounds[:, 0] for y in shape.bounds[:, 1]])
        outline = rotate_z(corners, turn)[:, :2]
        lo, hi = outline.min(axis=0), outline.max(axis=0)
        spare = np.array([surface.half_width, surface.half_depth]) - (hi - lo) / 2
        if (spare < 0).any():
            return None
        local = np.array([surface.x, surface.y]) + np.array([u, v]) * spare - (hi + lo) / 2
        x, y, z = carrier.to_world(
            np.array([[local[0], local[1], surface.z + TOUCHING / 2 - float(shape.bounds[0, 2])]])
        )[0]
        return self.place(
            shape, x, y, z, carrier.yaw + turn, support=carrier.id, pose="on", anywhere=surface.kind == "sill"
        )

    def scatter(
        self, carrier: Item, surface: Surface, shape: Shape, *, turn: float = np.pi, tries: int = 12
    ) -> Item | None:
        """Put a shape somewhere on a surface, turned by up to ``turn``."""
        for _ in range(tries):
            u, v = self.rng.uniform(-1, 1, 2)
            if item := self.on(carrier, surface, shape, u, v, self.rng.uniform(-turn, turn)):
                return item
        return None
