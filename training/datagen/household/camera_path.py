"""A robot's drive through a room: a closed loop over the free floor, looking at what stands about."""

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from training.datagen.household.camera import Pose
from training.datagen.household.scene import Scene

ROBOT_RADIUS = 0.22
"""Metres that the camera keeps from everything as tall as the robot."""

_CELL = 0.05
_KNOT = 1.2
"""Metres of drive from one thing looked at to the next."""
_FLAT = 0.03
"""Rugs and mats lower than this are driven over."""


class TooFullError(Exception):
    """A room cannot be driven through."""


def drive(scene: Scene, rng: np.random.Generator, *, frames: int, step: float, height: float) -> list[Pose]:
    """Camera poses along the loop, ``step`` metres apart; a longer drive goes round again.

    Args:
        height: of the camera above the floor in metres.

    Raises:
        TooFullError: the furniture leaves no way.
    """
    loop = _loop(scene, rng, height)
    lengths = np.linalg.norm(np.diff(loop, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    total = float(along[-1])
    places = (rng.uniform(0, total) + step * np.arange(frames)) % total
    x, y = (np.interp(places, along, loop[:, k]) for k in (0, 1))
    heading, pitch = _gaze(scene, rng, loop, along, height)
    return [
        Pose(float(px), float(py), height, float(heading(s)), float(pitch(s)))
        for px, py, s in zip(x, y, places, strict=True)
    ]


def clearance(scene: Scene, height: float) -> NDArray[np.float32]:
    """Metres from each cell of the floor, [y, x], to the nearest wall or thing that a robot of this height meets."""
    room = scene.room
    free = np.ones((round(room.depth / _CELL), round(room.width / _CELL)), np.uint8)
    free[[0, -1], :] = free[:, [0, -1]] = 0
    for item in scene.items:
        boxes = item.boxes()
        for centre, half in zip(boxes.centres, boxes.halves, strict=True):
            if centre[2] - half[2] > height + 0.15 or centre[2] + half[2] < _FLAT:
                continue
            corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half[:2]
            cos, sin = np.cos(boxes.yaw), np.sin(boxes.yaw)
            outline = corners @ np.array([[cos, sin], [-sin, cos]]) + centre[:2]
            cv2.fillPoly(free, [np.rint(outline / _CELL - 0.5).astype(np.int32)], 0)
    return cv2.distanceTransform(free, cv2.DIST_L2, 5) * np.float32(_CELL)


def _loop(scene: Scene, rng: np.random.Generator, height: float) -> NDArray[np.float64]:
    """A smooth closed curve (n, 2) that keeps clear of everything."""
    distance = clearance(scene, height)
    cells = np.argwhere(distance > ROBOT_RADIUS + _CELL)
    if len(cells) < 20:
        raise TooFullError("there is next to no free floor")
    graph = _graph(distance, cells)
    _, component = connected_components(graph, directed=False)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    stops = [int(rng.choice(nodes))]
    spread = np.full(len(nodes), np.inf)
    for _ in range(int(rng.integers(5, 8))):
        spread = np.minimum(spread, np.linalg.norm(cells[nodes] - cells[stops[-1]], axis=1))
        stops.append(int(nodes[int(rng.choice(np.argsort(spread)[-max(1, len(nodes) // 12) :]))]))
    stops = [stops[i] for i in rng.permutation(len(stops))]
    path: list[int] = []
    for start, end in zip(stops, [*stops[1:], stops[0]], strict=True):
        _, before = dijkstra(graph, directed=False, indices=start, return_predecessors=True)
        leg = [end]
        while leg[-1] != start:
            leg.append(int(before[leg[-1]]))
        path += leg[:0:-1]
    points = (cells[path][:, ::-1].astype(np.float64) + 0.5) * _CELL
    return _smoothed(points, distance)


def _graph(distance: NDArray[np.float32], cells: NDArray[np.int64]) -> coo_array:
    """Neighbouring free cells, dearer where it is narrow."""
    number = np.full(distance.shape, -1)
    number[cells[:, 0], cells[:, 1]] = np.arange(len(cells))
    rows, columns, costs = [], [], []
    for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
        other = cells + np.array([dy, dx])
        inside = (other >= 0).all(axis=1) & (other < distance.shape).all(axis=1)
        a, b = np.flatnonzero(inside), number[tuple(other[inside].T)]
        a, b = a[b >= 0], b[b >= 0]
        rows.append(a)
        columns.append(b)
        costs.append(np.hypot(dy, dx) / np.minimum(distance[tuple(cells[a].T)], 0.8))
    return coo_array(
        (np.concatenate(costs), (np.concatenate(rows), np.concatenate(columns))), shape=(len(cells),) * 2
    ).tocsr()


def _smoothed(points: NDArray[np.float64], distance: NDArray[np.float32]) -> NDArray[np.float64]:
    """The closed path without its corners: each point goes towards its neighbours' middle while that is clear."""
    for _ in range(150):
        middle = (
            np.roll(points, 3, axis=0)
            + np.roll(points, 1, axis=0)
            + np.roll(points, -1, axis=0)
            + np.roll(points, -3, axis=0)
        ) / 4
        wanted = points + 0.5 * (middle - points)
        cell = np.clip((wanted / _CELL).astype(int), 0, np.array(distance.shape)[::-1] - 1)
        clear = distance[cell[:, 1], cell[:, 0]] > ROBOT_RADIUS
        points = np.where(clear[:, None], wanted, points)
    return np.concatenate([points, points[:1]])


class _Turning:
    """An angle along the loop: from knot to knot by the shorter way round, at rest at each."""

    def __init__(self, knots: NDArray[np.float64], angles: NDArray[np.float64]) -> None:
        self._knots, self._angles = knots, np.unwrap(angles)

    def __call__(self, place: float) -> float:
        i = int(np.clip(np.searchsorted(self._knots, place, side="right") - 1, 0, len(self._knots) - 2))
        t = (place - self._knots[i]) / (self._knots[i + 1] - self._knots[i])
        return float(self._angles[i] + (self._angles[i + 1] - self._angles[i]) * (1 - np.cos(np.pi * t)) / 2)


def _gaze(
    scene: Scene, rng: np.random.Generator, loop: NDArray[np.float64], along: NDArray[np.float64], height: float
) -> tuple[_Turning, _Turning]:
    knots = np.linspace(0, along[-1], max(3, round(along[-1] / _KNOT)) + 1)
    targets, weights = _targets(scene)
    headings: list[float] = []
    pitches: list[float] = []
    for place in knots[:-1]:
        at = np.array([np.interp(place, along, loop[:, 0]), np.interp(place, along, loop[:, 1]), height])
        apart = targets - at
        far = np.linalg.norm(apart[:, :2], axis=1)
        # Neither so near that a thing fills the frame nor across the whole house.
        chances = weights * np.exp(-(((far - 1.5) / 0.8) ** 2)) + 1e-9
        if headings:
            turn = np.abs(np.angle(np.exp(1j * (np.arctan2(apart[:, 1], apart[:, 0]) - headings[-1]))))
            chances = chances * np.exp(-((turn / 1.2) ** 2)) + 1e-12
        dx, dy, dz = apart[int(rng.choice(len(targets), p=chances / chances.sum()))]
        headings.append(float(np.arctan2(dy, dx)))
        pitches.append(float(np.clip(np.arctan2(dz, max(0.3, np.hypot(dx, dy))), -0.5, 0.12)))
    closed = [np.array([*values, values[0]]) for values in (headings, pitches)]
    return _Turning(knots, closed[0]), _Turning(knots, closed[1])


def _targets(scene: Scene) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is worth a look, (n, 3), and how much: furniture, and more so where it is laden."""
    items = [item for item in scene.items if item.pose == "floor" and item.shape.size[2] > 0.1]
    laden = np.array(
        [1.0 + sum(other.support == item.id and other.shape.name != "book" for other in scene.items) for item in items]
    )
    points = np.array(
        [[item.centre[0], item.centre[1], item.z + float(item.shape.bounds[1, 2]) * 0.85] for item in items]
    )
    return points, np.minimum(laden, 6.0)
