"""Path of the robot's camera: a closed loop over the free floor, with the view turned towards the furniture."""

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from simulation.household.camera import CameraPose
from simulation.household.scene import Scene

ROBOT_RADIUS = 0.22
"""Metres that the camera keeps from every object that the robot could touch."""
CELL_SIZE = 0.05
"""Metres; side of a cell of the clearance map."""

_TARGET_SPACING = 1.2
"""Metres of path from one viewing target to the next."""
_MAX_STEP_HEIGHT = 0.03
"""Metres; the robot drives over rugs and mats that are lower."""
_HEADROOM = 0.15
"""Metres by which the robot is taller than its camera is high."""


class NoPathError(Exception):
    """The furniture leaves too little free floor for a path."""


def camera_path(scene: Scene, rng: np.random.Generator, *, frames: int, step: float, height: float) -> list[CameraPose]:
    """Return the poses of a camera that drives through a room, around the loop as often as the frames require.

    Args:
        scene: the furnished room.
        rng: source of every random choice.
        frames: number of poses.
        step: metres from pose to pose along the path.
        height: of the camera above the floor in metres.

    Raises:
        NoPathError: the furniture leaves too little free floor.
    """
    loop = _closed_loop(scene, rng, height)
    lengths = np.linalg.norm(np.diff(loop, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    total = float(along[-1])
    places = (rng.uniform(0, total) + step * np.arange(frames)) % total
    x, y = (np.interp(places, along, loop[:, k]) for k in (0, 1))
    heading, pitch = _view_angles(scene, rng, loop, along, height)
    return [
        CameraPose(float(px), float(py), height, heading.at(s), pitch.at(s))
        for px, py, s in zip(x, y, places, strict=True)
    ]


def clearance_map(scene: Scene, height: float) -> NDArray[np.float32]:
    """Compute the distance in metres from each cell of the floor to the nearest obstacle.

    Args:
        scene: the furnished room.
        height: of the camera in metres; objects well above it are no obstacles.

    Returns:
        (rows along y, columns along x), cells of ``CELL_SIZE``.
    """
    room = scene.room
    free = np.ones((round(room.depth / CELL_SIZE), round(room.width / CELL_SIZE)), np.uint8)
    free[[0, -1], :] = free[:, [0, -1]] = 0
    for placed in scene.objects:
        boxes = placed.oriented_boxes()
        for centre, half in zip(boxes.centres, boxes.half_sizes, strict=True):
            if centre[2] - half[2] > height + _HEADROOM or centre[2] + half[2] < _MAX_STEP_HEIGHT:
                continue
            corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half[:2]
            cos, sin = np.cos(boxes.yaw), np.sin(boxes.yaw)
            outline = corners @ np.array([[cos, sin], [-sin, cos]]) + centre[:2]
            cv2.fillPoly(free, [np.rint(outline / CELL_SIZE - 0.5).astype(np.int32)], 0)
    return cv2.distanceTransform(free, cv2.DIST_L2, 5) * np.float32(CELL_SIZE)


def _closed_loop(scene: Scene, rng: np.random.Generator, height: float) -> NDArray[np.float64]:
    """Connect random points of the free floor by shortest paths to a smooth closed curve of x and y, (n, 2)."""
    clearance = clearance_map(scene, height)
    cells = np.argwhere(clearance > ROBOT_RADIUS + CELL_SIZE)
    if len(cells) < 20:
        raise NoPathError("there is next to no free floor")
    graph = _grid_graph(clearance, cells)
    _, component = connected_components(graph, directed=False)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    stops = _spread_stops(rng, cells, nodes)
    path: list[int] = []
    for start, end in zip(stops, [*stops[1:], stops[0]], strict=True):
        _, before = dijkstra(graph, directed=False, indices=start, return_predecessors=True)
        leg = [end]
        while leg[-1] != start:
            leg.append(int(before[leg[-1]]))
        path += leg[:0:-1]
    points = (cells[path][:, ::-1].astype(np.float64) + 0.5) * CELL_SIZE
    return _smoothed(points, clearance)


def _spread_stops(rng: np.random.Generator, cells: NDArray[np.int64], nodes: NDArray[np.int64]) -> list[int]:
    """Choose six to eight nodes far from one another, in random order."""
    stops = [int(rng.choice(nodes))]
    distance = np.full(len(nodes), np.inf)
    for _ in range(int(rng.integers(5, 8))):
        distance = np.minimum(distance, np.linalg.norm(cells[nodes] - cells[stops[-1]], axis=1))
        farthest = np.argsort(distance)[-max(1, len(nodes) // 12) :]
        stops.append(int(nodes[int(rng.choice(farthest))]))
    return [stops[i] for i in rng.permutation(len(stops))]


def _grid_graph(clearance: NDArray[np.float32], cells: NDArray[np.int64]) -> coo_array:
    """Connect neighbouring free cells, at a higher cost where the passage is narrow."""
    number = np.full(clearance.shape, -1)
    number[cells[:, 0], cells[:, 1]] = np.arange(len(cells))
    rows, columns, costs = [], [], []
    for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
        neighbour = cells + np.array([dy, dx])
        inside = (neighbour >= 0).all(axis=1) & (neighbour < clearance.shape).all(axis=1)
        a, b = np.flatnonzero(inside), number[tuple(neighbour[inside].T)]
        a, b = a[b >= 0], b[b >= 0]
        rows.append(a)
        columns.append(b)
        costs.append(np.hypot(dy, dx) / np.minimum(clearance[tuple(cells[a].T)], 0.8))
    return coo_array(
        (np.concatenate(costs), (np.concatenate(rows), np.concatenate(columns))), shape=(len(cells),) * 2
    ).tocsr()


def _smoothed(points: NDArray[np.float64], clearance: NDArray[np.float32]) -> NDArray[np.float64]:
    """Smooth a closed path: move each point towards the mean of its neighbours while that keeps it clear."""
    for _ in range(150):
        mean = (
            np.roll(points, 3, axis=0)
            + np.roll(points, 1, axis=0)
            + np.roll(points, -1, axis=0)
            + np.roll(points, -3, axis=0)
        ) / 4
        wanted = points + 0.5 * (mean - points)
        cell = np.clip((wanted / CELL_SIZE).astype(int), 0, np.array(clearance.shape)[::-1] - 1)
        clear = clearance[cell[:, 1], cell[:, 0]] > ROBOT_RADIUS
        points = np.where(clear[:, None], wanted, points)
    return np.concatenate([points, points[:1]])


class _EasedAngle:
    """An angle along the path that eases in and out between knots and takes the shorter way round."""

    def __init__(self, knots: NDArray[np.float64], angles: NDArray[np.float64]) -> None:
        """
        Args:
            knots: metres along the path, (n,).
            angles: radians at the knots, (n,).
        """
        self._knots, self._angles = knots, np.unwrap(angles)

    def at(self, place: float) -> float:
        """Return the angle in radians at a place in metres along the path."""
        i = int(np.clip(np.searchsorted(self._knots, place, side="right") - 1, 0, len(self._knots) - 2))
        t = (place - self._knots[i]) / (self._knots[i + 1] - self._knots[i])
        return float(self._angles[i] + (self._angles[i + 1] - self._angles[i]) * (1 - np.cos(np.pi * t)) / 2)


def _view_angles(
    scene: Scene, rng: np.random.Generator, loop: NDArray[np.float64], along: NDArray[np.float64], height: float
) -> tuple[_EasedAngle, _EasedAngle]:
    """Choose viewing targets along a loop (n, 2) whose points lie at ``along`` metres; return heading and pitch."""
    knots = np.linspace(0, along[-1], max(3, round(along[-1] / _TARGET_SPACING)) + 1)
    targets, weights = _viewing_targets(scene)
    headings: list[float] = []
    pitches: list[float] = []
    for place in knots[:-1]:
        position = np.array([np.interp(place, along, loop[:, 0]), np.interp(place, along, loop[:, 1]), height])
        offsets = targets - position
        distance = np.linalg.norm(offsets[:, :2], axis=1)
        # A target is preferred at 1.5 m, where it neither fills the frame nor is lost in the room.
        probability = weights * np.exp(-(((distance - 1.5) / 0.8) ** 2)) + 1e-9
        if headings:
            turn = np.abs(np.angle(np.exp(1j * (np.arctan2(offsets[:, 1], offsets[:, 0]) - headings[-1]))))
            probability = probability * np.exp(-((turn / 1.2) ** 2)) + 1e-12
        dx, dy, dz = offsets[int(rng.choice(len(targets), p=probability / probability.sum()))]
        headings.append(float(np.arctan2(dy, dx)))
        pitches.append(float(np.clip(np.arctan2(dz, max(0.3, np.hypot(dx, dy))), -0.5, 0.12)))
    heading, pitch = (_EasedAngle(knots, np.array([*angles, angles[0]])) for angles in (headings, pitches))
    return heading, pitch


def _viewing_targets(scene: Scene) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points on the furniture, (n, 3) in metres, and their weights, (n,): higher with more objects on it."""
    furniture = [placed for placed in scene.objects if placed.placement == "floor" and placed.mesh.size[2] > 0.1]
    load = [
        sum(other.support == placed.id and other.mesh.class_name != "book" for other in scene.objects)
        for placed in furniture
    ]
    points = np.array(
        [
            [placed.centre[0], placed.centre[1], placed.pose.z + float(placed.mesh.bounds[1, 2]) * 0.85]
            for placed in furniture
        ]
    )
    return points, np.minimum(1.0 + np.array(load), 6.0)
