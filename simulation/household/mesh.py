"""Meshes in metres, z up, faces counter-clockwise seen from outside: parametric parts, and objects made of them.

Own code because Blender's bevels and smoothing need polygons; trimesh has triangles only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulation.household.materials import Material

Points = NDArray[np.float64]
Faces = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class MeshPart:
    """A polygon mesh of one material; the renderer bevels, remeshes and smooths it."""

    vertices: Points
    """(n, 3), in the frame of the object that the part belongs to."""
    faces: Faces
    """Vertex indices of each polygon."""
    material: Material
    smooth: bool = False
    """Whether to interpolate normals across edges."""
    bevel: float = 0.0
    """Radius of rounded edges in metres."""
    remesh: float = 0.0
    """Voxel size in metres of a remesh that fuses overlapping pieces into one surface; 0 for none."""

    @property
    def bounds(self) -> Points:
        """Minimum and maximum x, y and z, (2, 3)."""
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    def transformed(self, offset: ArrayLike = (0, 0, 0), *, turn: float = 0.0, tilt: float = 0.0) -> "MeshPart":
        """Return the part rotated by ``tilt`` radians about x, then by ``turn`` about z, then moved by ``offset``."""
        cos, sin = np.cos(tilt), np.sin(tilt)
        tilted = self.vertices @ np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]]).T
        return replace(self, vertices=rotate_z(tilted, turn) + np.asarray(offset, dtype=float))


def rotate_z(points: Points, angle: float) -> Points:
    """Rotate points (n, 3) about the z axis by an angle in radians, counter-clockwise seen from above."""
    cos, sin = np.cos(angle), np.sin(angle)
    return points @ np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]).T


def box(size: ArrayLike, centre: ArrayLike, material: Material, *, bevel: float = 0.004) -> MeshPart:
    """Build an axis-aligned box; the bevel is limited to a quarter of the shortest side."""
    size = np.asarray(size, dtype=float)
    corners = np.array(
        [[x, y, z] for z in (-0.5, 0.5) for x, y in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))]
    )
    faces = ((3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
    bevel = min(bevel, float(size.min()) / 4)
    return MeshPart(corners * size + np.asarray(centre, dtype=float), faces, material, bevel=bevel)


def lathe(profile: Sequence[tuple[float, float]], material: Material, *, segments: int = 32) -> MeshPart:
    """Build a surface of revolution about the z axis.

    Args:
        profile: (radius, z) from the bottom outwards and up; one that returns downwards inside makes a vessel. Both
            ends are closed by a polygon.
        material: of the surface.
        segments: vertices on each ring.
    """
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices = [np.column_stack([ring * max(radius, 1e-5), np.full(segments, z)]) for radius, z in profile]
    return MeshPart(np.concatenate(vertices), _ring_faces(len(profile), segments), material, smooth=True)


def lathe_profile(radii: Sequence[float], heights: Sequence[float]) -> list[tuple[float, float]]:
    """Pair radii with heights, as :func:`lathe` takes them."""
    return list(zip(radii, heights, strict=True))


def cylinder(
    radius: float, height: float, base: ArrayLike, material: Material, *, top: float | None = None
) -> MeshPart:
    """Build an upright cylinder on the centre of its base, or a truncated cone if the ``top`` radius differs."""
    top = radius if top is None else top
    edge = min(0.15 * min(radius, top), 0.1 * height, 0.006)
    slope = (top - radius) / height
    profile = [
        (radius - edge, 0.0),
        (radius + slope * edge, edge),
        (top - slope * edge, height - edge),
        (top - edge, height),
    ]
    return lathe(profile, material, segments=24).transformed(base)


def tube(
    path: ArrayLike, radius: ArrayLike, material: Material, *, segments: int = 10, flatten: float = 1.0
) -> MeshPart:
    """Sweep a circle along a path.

    Args:
        path: points (n, 3).
        radius: one radius or one for each point.
        material: of the surface.
        segments: vertices on each ring.
        flatten: factor on the circle's extent in z.
    """
    points = np.asarray(path, dtype=float)
    radii = np.broadcast_to(np.asarray(radius, dtype=float), (len(points),))
    tangents = np.gradient(points, axis=0)
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-9)
    # The normal is transported along the path, so that the rings do not twist.
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
    return MeshPart(np.concatenate(rings), _ring_faces(len(points), segments), material, smooth=True)


def ellipsoid(
    radii: ArrayLike, centre: ArrayLike, material: Material, *, squareness: float = 1.0, segments: int = 24
) -> MeshPart:
    """Build a superellipsoid: an ellipsoid at ``squareness`` 1, closer to a box below it, as a cushion is."""
    heights = np.linspace(-np.pi / 2, np.pi / 2, segments // 2 + 1)
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)

    def bulge(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sign(values) * np.abs(values) ** squareness

    across = np.maximum(bulge(np.cos(heights)), 1e-4)[:, None]
    x, y = across * bulge(np.cos(angles)), across * bulge(np.sin(angles))
    z = np.broadcast_to(bulge(np.sin(heights))[:, None], x.shape)
    vertices = np.stack([x, y, z], axis=2).reshape(-1, 3) * np.asarray(radii, dtype=float)
    faces = _ring_faces(len(heights), segments)
    return MeshPart(vertices + np.asarray(centre, dtype=float), faces, material, smooth=True)


def prism(outline: ArrayLike, height: float, material: Material, *, bevel: float = 0.003) -> MeshPart:
    """Extrude an outline (n, 2), counter-clockwise, from z = 0 upwards."""
    points = np.asarray(outline, dtype=float)
    count = len(points)
    vertices = np.concatenate([np.column_stack([points, np.full(count, z)]) for z in (0.0, height)])
    sides = [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
    caps = (tuple(range(count - 1, -1, -1)), tuple(range(count, 2 * count)))
    return MeshPart(vertices, (*sides, *caps), material, bevel=min(bevel, height / 4))


def sheet(grid: Points, material: Material) -> MeshPart:
    """Build an open surface through a grid of points (rows, columns, 3), such as cloth or a leaf."""
    rows, columns, _ = grid.shape
    faces = tuple(
        (r * columns + c, r * columns + c + 1, (r + 1) * columns + c + 1, (r + 1) * columns + c)
        for r in range(rows - 1)
        for c in range(columns - 1)
    )
    return MeshPart(grid.reshape(-1, 3), faces, material, smooth=True)


def join(parts: Sequence[MeshPart], *, remesh: float = 0.0) -> MeshPart:
    """Join parts into one with the material, shading and bevel of the first."""
    first, start = parts[0], 0
    faces: list[tuple[int, ...]] = []
    for part in parts:
        faces += [tuple(index + start for index in face) for face in part.faces]
        start += len(part.vertices)
    vertices = np.concatenate([part.vertices for part in parts])
    return MeshPart(vertices, tuple(faces), first.material, first.smooth or remesh > 0, first.bevel, remesh)


@cache
def _ring_faces(rings: int, segments: int) -> Faces:
    """Return the quads between neighbouring rings and the polygons that close the first and the last ring."""
    quads = [
        (
            r * segments + s,
            r * segments + (s + 1) % segments,
            (r + 1) * segments + (s + 1) % segments,
            (r + 1) * segments + s,
        )
        for r in range(rings - 1)
        for s in range(segments)
    ]
    last = (rings - 1) * segments
    return (*quads, tuple(range(segments - 1, -1, -1)), tuple(range(last, last + segments)))


SurfaceKind = Literal["top", "shelf", "plate", "seat", "sill"]


@dataclass(frozen=True)
class SupportSurface:
    """A horizontal rectangle on which other objects can stand, in metres in the frame of its object."""

    x: float
    """Centre, as is ``y``."""
    y: float
    half_width: float
    """Half the extent along x."""
    half_depth: float
    """Half the extent along y."""
    z: float
    kind: SurfaceKind = "top"
    """Decides which objects may stand here."""


@dataclass(frozen=True, eq=False)
class ObjectMesh:
    """An object in its own frame, in metres: it stands on z = 0, its front faces -y, its back faces +y."""

    class_name: str
    """ACVR's class name if the object is labelled, any other noun if not."""
    parts: tuple[MeshPart, ...]
    colour: str = ""
    """Word for the dominant colour; empty if no single word is right."""
    material: str = ""
    """Adjective, such as ``wooden``, ``glass``, ``metal`` or ``leather``; empty if none is right."""
    surfaces: tuple[SupportSurface, ...] = ()
    caption_noun: str = ""
    """Noun in captions; empty if it is the class name."""

    @property
    def noun(self) -> str:
        """Noun that captions use, a key of ``captions.frame_contents.NOUNS`` if captions mention such objects."""
        return self.caption_noun or self.class_name

    @cached_property
    def part_bounds(self) -> NDArray[np.float64]:
        """Minimum and maximum x, y and z of each part, (parts, 2, 3)."""
        return np.stack([part.bounds for part in self.parts])

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Minimum and maximum x, y and z of the object, (2, 3)."""
        return np.stack([self.part_bounds[:, 0].min(axis=0), self.part_bounds[:, 1].max(axis=0)])

    @property
    def size(self) -> NDArray[np.float64]:
        """Width, depth and height, (3,)."""
        return self.bounds[1] - self.bounds[0]
