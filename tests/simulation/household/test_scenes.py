"""Plans of sequences: rooms whose objects are apart, supported and typical of the room."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.household.layout.random_scene import ROOM_KINDS, random_scene
from simulation.household.scene import ObjectPose, OrientedBoxes, Scene
from simulation.household.scene_builder import TOLERANCE
from simulation.household.sequences import CAMERA_HEIGHTS, RenderSettings, plan_sequence


def cube(x: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> OrientedBoxes:
    return OrientedBoxes.from_bounds(np.array([[[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]]]), ObjectPose(x, 0.0, z, yaw))


def test_penetration_depth_of_turned_boxes_follows_from_their_geometry() -> None:
    # Half a side and half a diagonal add up to 1.207.
    assert cube().penetration_depth(cube(1.1, yaw=np.pi / 4)) == pytest.approx(0.5 + np.sqrt(0.5) - 1.1)
    assert cube().penetration_depth(cube(1.3, yaw=np.pi / 4)) < 0
    assert cube().penetration_depth(cube(z=1.0, yaw=np.pi / 4)) == pytest.approx(0)


def test_axis_aligned_bounds_enclose_the_turned_box() -> None:
    low, high = cube(2.0, yaw=np.pi / 4).axis_aligned_bounds()
    assert low == pytest.approx([2 - np.sqrt(0.5), -np.sqrt(0.5), 0])
    assert high == pytest.approx([2 + np.sqrt(0.5), np.sqrt(0.5), 1])


SceneOf = Callable[[str, int], Scene]


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(ROOM_KINDS), day=st.booleans())
def test_objects_are_apart_inside_the_room_and_supported(seed: int, kind: str, day: bool) -> None:
    scene = random_scene(np.random.default_rng(seed), kind, day=day)
    assert_no_object_intersects_another(scene)
    assert_every_object_is_inside_the_room_and_supported(scene)


def assert_no_object_intersects_another(scene: Scene) -> None:
    boxes = [placed.oriented_boxes() for placed in scene.objects]
    bounds = [oriented.axis_aligned_bounds() for oriented in boxes]
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
    assert [(placed.mesh.class_name, placed.pose, placed.support) for placed in first.objects] == [
        (placed.mesh.class_name, placed.pose, placed.support) for placed in again.objects
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
    found = [{placed.mesh.class_name for placed in scene_of(kind, seed).objects} for seed in range(4)]
    for name in names:
        assert sum(name in classes for classes in found) >= 3, name


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


def test_six_sequences_show_every_room_all_heights_and_both_lights() -> None:
    planned = [plan_sequence(RenderSettings(frames=1), number) for number in range(6)]
    assert {sequence.scene.room.kind for sequence in planned} == set(ROOM_KINDS)
    assert {(sequence.poses[0].z, sequence.scene.lighting.day) for sequence in planned} == {
        (height, day) for height in CAMERA_HEIGHTS for day in (True, False)
    }


def test_sequence_does_not_depend_on_how_many_frames_are_made() -> None:
    short, long = plan_sequence(RenderSettings(frames=2), 3), plan_sequence(RenderSettings(frames=5), 3)
    assert long.poses[:2] == short.poses
    assert long.response == short.response
    assert [placed.mesh.class_name for placed in long.scene.objects] == [
        placed.mesh.class_name for placed in short.scene.objects
    ]


def test_another_seed_gives_another_room_and_path() -> None:
    first, other = plan_sequence(RenderSettings(frames=1), 0), plan_sequence(RenderSettings(frames=1, seed=1), 0)
    assert first.scene.room != other.scene.room
    assert first.poses != other.poses
