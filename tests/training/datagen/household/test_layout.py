import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.datagen.household.layout import ROOMS, furnish
from training.datagen.household.scene import TOUCHING, Boxes, Scene

scenes = st.builds(
    lambda seed, kind, day: furnish(np.random.default_rng(seed), kind, day=day),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(ROOMS),
    day=st.booleans(),
)


@settings(max_examples=6)
@given(scene=scenes)
def test_nothing_stands_in_anything_else(scene: Scene) -> None:
    boxes = [item.boxes() for item in scene.items]
    hulls = [box.hull() for box in boxes]
    for a, b in itertools.combinations(range(len(boxes)), 2):
        if (hulls[a][1] <= hulls[b][0]).any() or (hulls[b][1] <= hulls[a][0]).any():
            continue
        depth = boxes[a].overlap(boxes[b])
        assert depth <= TOUCHING, (scene.items[a].shape.name, scene.items[b].shape.name, depth)


@settings(max_examples=6)
@given(scene=scenes)
def test_everything_is_inside_the_room_and_stands_on_something(scene: Scene) -> None:
    room = scene.room
    for item in scene.items:
        low, high = item.boxes().hull()
        if item.shape.name not in ("window", "door", "potted plant"):
            assert (low[:2] >= -2 * TOUCHING).all()
            assert (high <= np.array([room.width, room.depth, room.height]) + 2 * TOUCHING).all()
        if item.support is None:
            assert item.pose in ("floor", "wall") or item.shape.name == "sink"
            continue
        carrier = scene.item(item.support)
        assert low[2] >= carrier.z - TOUCHING
        local = np.linalg.norm(item.centre[:2] - carrier.centre[:2])
        assert local <= np.hypot(*carrier.shape.size[:2]) / 2, (item.shape.name, carrier.shape.name)


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(ROOMS))
def test_scene_follows_from_its_seed(seed: int, kind: str) -> None:
    first, again = (furnish(np.random.default_rng(seed), kind, day=True) for _ in range(2))
    assert first.room == again.room
    assert first.lighting == again.lighting
    assert [(i.shape.name, i.x, i.y, i.z, i.yaw, i.support) for i in first.items] == [
        (i.shape.name, i.x, i.y, i.z, i.yaw, i.support) for i in again.items
    ]


@pytest.mark.parametrize(
    ("kind", "things"),
    [
        ("kitchen", {"refrigerator", "oven", "sink", "counter"}),
        ("living room", {"couch", "television", "coffee table"}),
        ("bedroom", {"bed", "nightstand"}),
        ("office", {"desk", "book"}),
        ("dining room", {"dining table", "chair"}),
        ("bathroom", {"toilet", "sink"}),
    ],
)
def test_rooms_have_what_they_are_named_for(kind: str, things: set[str]) -> None:
    seen = [
        {item.shape.name for item in furnish(np.random.default_rng(seed), kind, day=True).items} for seed in range(8)
    ]
    for thing in things:
        assert sum(thing in names for names in seen) >= 6, thing


def test_small_things_lie_on_what_people_put_them_on() -> None:
    carriers = set()
    for seed, kind in itertools.product(range(4), ROOMS):
        scene = furnish(np.random.default_rng(seed), kind, day=True)
        carriers |= {
            scene.item(item.support).shape.name
            for item in scene.items
            if item.shape.name in ("cup", "fork", "wine glass", "keyboard") and item.support
        }
        assert all(item.support for item in scene.items if item.shape.name in ("cup", "fork", "mouse", "book", "apple"))
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


def test_turned_boxes_overlap_as_deep_as_they_should() -> None:
    cube = np.array([[[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]]])
    straight, turned = Boxes.of(cube, 0, 0, 0, 0.0), Boxes.of(cube, 1.1, 0, 0, np.pi / 4)
    # Half a side and half a diagonal are 1.207.
    assert straight.overlap(turned) == pytest.approx(0.5 + np.sqrt(0.5) - 1.1)
    assert straight.overlap(Boxes.of(cube, 1.3, 0, 0, np.pi / 4)) < 0
    assert straight.overlap(Boxes.of(cube, 0, 0, 1.0, np.pi / 4)) == pytest.approx(0)
