"""Furnished rooms: objects apart, supported and typical of the room."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.household.layout.random_scene import ROOM_KINDS, random_scene
from simulation.household.scene import Scene
from simulation.household.scene_builder import TOLERANCE

SceneOf = Callable[[str, int], Scene]


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(ROOM_KINDS), day=st.booleans())
def test_objects_are_apart_inside_the_room_and_supported(seed: int, kind: str, day: bool) -> None:
    scene = random_scene(np.random.default_rng(seed), kind, day=day)
    assert_no_object_intersects_another(scene)
    assert_every_object_is_inside_the_room_and_supported(scene)


def assert_no_object_intersects_another(scene: Scene) -> None:
    boxes = [placed.oriented_boxes() for placed in scene.objects]
    bounds = [each.axis_aligned_bounds() for each in boxes]
    for a, b in itertools.combinations(range(len(boxes)), 2):
        if (bounds[a][1] <= bounds[b][0]).any() or (bounds[b][1] <= bounds[a][0]).any():
            continue
        depth = boxes[a].penetration_depth(boxes[b])
        assert depth <= TOLERANCE, (scene.objects[a].mesh.class_name, scene.objects[b].mesh.class_name, depth)


def assert_every_object_is_inside_the_room_and_supported(scene: Scene) -> None:
    room = scene.room
    for placed in scene.objects:
        name = placed.mesh.class_name
        low, high = placed.oriented_boxes().axis_aligned_bounds()
        if name not in ("window", "door", "potted plant"):
            assert (low[:2] >= -2 * TOLERANCE).all()
            assert (high <= np.array([room.width, room.depth, room.height]) + 2 * TOLERANCE).all()
        if placed.support is None:
            assert placed.placement in ("floor", "wall") or name == "sink"
            continue
        carrier = scene.object_by_id(placed.support)
        assert low[2] >= carrier.pose.z - TOLERANCE
        distance = np.linalg.norm(placed.centre[:2] - carrier.centre[:2])
        assert distance <= np.hypot(*carrier.mesh.size[:2]) / 2, (name, carrier.mesh.class_name)


@pytest.mark.parametrize("kind", ROOM_KINDS)
def test_scene_follows_from_its_seed(kind: str, scene_of: SceneOf) -> None:
    first, again = scene_of(kind, 0), random_scene(np.random.default_rng(0), kind, day=True)
    assert first.room == again.room
    assert first.lighting == again.lighting
    assert [(each.mesh.class_name, each.pose, each.support) for each in first.objects] == [
        (each.mesh.class_name, each.pose, each.support) for each in again.objects
    ]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("kitchen", {"refrigerator", "oven", "sink", "counter"}),
        ("living room", {"couch", "television", "coffee table"}),
        ("bedroom", {"bed", "nightstand"}),
        ("office", {"desk", "book"}),
        ("dining room", {"dining table", "chair"}),
        ("bathroom", {"toilet", "sink"}),
    ],
)
def test_rooms_have_their_typical_objects(kind: str, names: set[str], scene_of: SceneOf) -> None:
    found = [{placed.mesh.class_name for placed in scene_of(kind, seed).objects} for seed in range(8)]
    for name in names:
        assert sum(name in each for each in found) >= 6, name


def test_small_objects_stand_on_furniture(scene_of: SceneOf) -> None:
    carriers = set()
    for seed, kind in itertools.product(range(4), ROOM_KINDS):
        scene = scene_of(kind, seed)
        for placed in scene.objects:
            name = placed.mesh.class_name
            if name in ("cup", "fork", "mouse", "book", "apple"):
                assert placed.support
            if name in ("cup", "fork", "wine glass", "keyboard") and placed.support:
                carriers.add(scene.object_by_id(placed.support).mesh.class_name)
    assert carriers <= {
        "dining table",
        "desk",
        "counter",
        "coffee table",
        "cabinet",
        "nightstand",
        "shelf",
        "bed",
        "couch",
    }
