"""Parametric meshes: metres, z up, faces counter-clockwise from outside. Plain numpy, no renderer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from training.datagen.household.materials import Material

Points = NDArray[np.float64]
Faces = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Part:
    """A mesh of one material; the renderer rounds and smooths it."""

    vertices: Points
    """(n, 3), in the frame of the item that the part belongs to."""
    faces: Faces
    material: Material
    smooth: bool = False
    """Shade across edges, as for anything round."""
    bevel: float = 0.0
    """Radius of rounded edges in metres."""
    remesh: float = 0.0
    """Melt the part's pieces into one skin of this voxel size in metres; 0 leaves them as they are."""

    @property
    def bounds(self) -> Points:
        """(2, 3): the smallest and the largest x, y and z."""
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    def moved(self, offset: ArrayLike = (0, 0, 0), *, turn: float = 0.0, tilt: float = 0.0) -> "Part":
        """The part tilted about x, then turned about z (radians), then moved by ``offset``."""
        cos, sin = np.cos(tilt), np.sin(tilt)
        tilted = self.vertices @ np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]]).T
        return Part(
            rotate_z(tilted, turn) + np.asarray(offset, dtype=float),
            self.faces,
            self.material,
            self.smooth,
            self.bevel,
            self.remesh,
        )


def rotate_z(points: Points, angle: float) -> Points:
    """Points (n, 3) turned about the z axis, counter-clockwise from above."""
    cos, sin = np.cos(angle), np.sin(angle)
    return points @ np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]).T


def box(size: ArrayLike, centre: ArrayLike, material: Material, *, bevel: float = 0.004) -> Part:
    """An axis-aligned box; no edge is rounded by more than a quarter of its shortest side."""
    size = np.asarray(size, dtype=float)
    corners = np.array(
        [[x, y, z] for z in (-0.5, 0.5) for x, y in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))]
    )
    faces = ((3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
    bevel = min(bevel, float(size.min()) / 4)
    return Part(corners * size + np.asarray(centre, dtype=float), faces, material, bevel=bevel)


def lathe(profile: Sequence[tuple[float, float]], material: Material, *, segments: int = 32) -> Part:
    """A profile of (radius, z), from the bottom outwards and up, turned about the z axis.

    The ends are closed with a fan where their radius is not 0. A profile that comes back down inside makes a vessel.
    """
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices = [np.column_stack([ring * max(radius, 1e-5), np.full(segments, z)]) for radius, z in profile]
    faces = _strips(len(profile), segments)
    return Part(np.concatenate(vertices), (*faces, *_caps(len(profile), segments)), material, smooth=True)


def cylinder(radius: float, height: float, base: ArrayLike, material: Material, *, top: float | None = None) -> Part:
    """An upright cylinder, or with another radius at the ``top`` a cone, on its base's centre."""
    top = radius if top is None else top
    edge = min(0.15 * min(radius, top), 0.1 * height, 0.006)
    slope = (top - radius) / height
    profile = [
        (radius - edge, 0.0),
        (radius + slope * edge, edge),
        (top - slope * edge, height - edge),
        (top - edge, height),
    ]
    return lathe(profile, material, segments=24).moved(base)


def tube(path: ArrayLike, radius: ArrayLike, material: Material, *, segments: int = 10, flatten: float = 1.0) -> Part:
    """A tube along points (n, 3); a radius a point makes it thicker or thinner, ``flatten`` squeezes it in z."""
    points = np.asarray(path, dtype=float)
    radii = np.broadcast_to(np.asarray(radius, dtype=float), (len(points),))
    tangents = np.gradient(points, axis=0)
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-9)
    # Carried along, so that the rings do not twist.
    first = np.array([0.0, 0.0, 1.0]) if abs(tangents[0, 2]) < 0.9 else np.array([1.0, 0.0, 0.0])
    normal = first - tangents[0] * (first @ tangents[0])
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    rings = []
    for point, tangent, r in zip(points, tangents, radii, strict=True):
        normal = normal - tangent * (normal @ tangent)
        normal /= np.linalg.norm(normal)
        side = np.cross(tangent, normal)
        offsets = np.outer(np.cos(angles), normal) + np.outer(np.sin(angles), side)
        rings.append(point + r * offsets * [1, 1, flatten])
    faces = _strips(len(points), segments)
    return Part(np.concatenate(rings), (*faces, *_caps(len(points), segments)), material, smooth=True)


def ellipsoid(
    radii: ArrayLike, centre: ArrayLike, material: Material, *, squareness: float = 1.0, segments: int = 24
) -> Part:
    """An ellipsoid; with ``squareness`` below 1 its sides flatten towards a box, as a cushion's do."""
    heights = np.linspace(-np.pi / 2, np.pi / 2, segments // 2 + 1)
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)

    def bulge(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sign(values) * np.abs(values) ** squareness

    across = np.maximum(bulge(np.cos(heights)), 1e-4)[:, None]
    x, y = across * bulge(np.cos(angles)), across * bulge(np.sin(angles))
    z = np.broadcast_to(bulge(np.sin(heights))[:, None], x.shape)
    vertices = np.stack([x, y, z], axis=2).reshape(-1, 3) * np.asarray(radii, dtype=float)
    rings = len(heights)
    faces = (*_strips(rings, segments), *_caps(rings, segments))
    return Part(vertices + np.asarray(centre, dtype=float), faces, material, smooth=True)


def prism(outline: ArrayLike, height: float, material: Material, *, bevel: float = 0.003) -> Part:
    """An outline (n, 2), counter-clockwise, pulled up from z = 0."""
    points = np.asarray(outline, dtype=float)
    count = len(points)
    vertices = np.concatenate([np.column_stack([points, np.full(count, z)]) for z in (0.0, height)])
    sides = [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
    caps = (tuple(range(count - 1, -1, -1)), tuple(range(count, 2 * count)))
    return Part(vertices, (*sides, *caps), material, bevel=min(bevel, height / 4))


def sheet(grid: Points, material: Material) -> Part:
    """A surface through a grid of points (rows, columns, 3): cloth, a leaf."""
    rows, columns, _ = grid.shape
    faces = tuple(
        (r * columns + c, r * columns + c + 1, (r + 1) * columns + c + 1, (r + 1) * columns + c)
        for r in range(rows - 1)
        for c in range(columns - 1)
    )
    return Part(grid.reshape(-1, 3), faces, material, smooth=True)


def joined(parts: Sequence[Part], *, remesh: float = 0.0) -> Part:
    """One part out of several of the same kind; material and shading are the first one's."""
    first, start = parts[0], 0
    faces: list[tuple[int, ...]] = []
    for part in parts:
        faces += [tuple(index + start for index in face) for face in part.faces]
        start += len(part.vertices)
    vertices = np.concatenate([part.vertices for part in parts])
    return Part(vertices, tuple(faces), first.material, first.smooth or remesh > 0, first.bevel, remesh)


def _strips(rings: int, segments: int) -> list[tuple[int, ...]]:
    return [
        (
            r * segments + s,
            r * segments + (s + 1) % segments,
            (r + 1) * segments + (s + 1) % segments,
            (r + 1) * segments + s,
        )
        for r in range(rings - 1)
        for s in range(segments)
    ]


def _caps(rings: int, segments: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    start = (rings - 1) * segments
    return tuple(range(segments - 1, -1, -1)), tuple(range(start, start + segments))
