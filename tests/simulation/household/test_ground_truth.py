"""Masks and labels in ACVR's format."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simulation.household.ground_truth import (
    MIN_VISIBLE_PIXELS,
    acvr_labels,
    label_mask,
    labelled_ids,
    visible_extents,
)
from simulation.household.layout.random_scene import random_scene

instance_maps = hnp.arrays(np.uint16, (24, 32), elements=st.sampled_from([0, 0, 1, 2, 7, 300]))


@settings(max_examples=20)
@given(instances=instance_maps)
def test_boxes_and_counts_are_those_of_the_pixels(instances) -> None:
    visible = visible_extents(instances)
    for number in set(np.unique(instances)) - {0}:
        rows, columns = np.nonzero(instances == number)
        if len(rows) < MIN_VISIBLE_PIXELS:
            assert number not in visible
            continue
        extent = visible[int(number)]
        assert (extent.left, extent.top, extent.right, extent.bottom) == (
            columns.min(),
            rows.min(),
            columns.max(),
            rows.max(),
        )
        assert extent.pixels == len(rows)


@settings(max_examples=20)
@given(instances=instance_maps)
def test_mask_holds_the_labelled_objects_and_nothing_else(instances) -> None:
    visible, wanted = visible_extents(instances), {1, 300}
    mask = label_mask(instances, visible, wanted)
    assert mask.dtype == np.uint16
    assert set(np.unique(mask)) - {0} == wanted & visible.keys()
    for number in wanted & visible.keys():
        assert np.array_equal(mask == number, instances == number)
    assert label_mask(instances, visible, {1, 2}).dtype == np.uint8


def test_labels_name_each_labelled_object_by_the_same_number_in_every_frame() -> None:
    scene = random_scene(np.random.default_rng(0), "kitchen", day=True)
    table = next(placed.id for placed in scene.objects if placed.mesh.class_name == "dining table")
    window = next(placed.id for placed in scene.objects if placed.mesh.class_name == "window")
    instances = np.zeros((24, 32), np.uint16)
    instances[2:10, 3:20], instances[15:20, 0:10] = table, window
    frames = {0: visible_extents(instances), 1: visible_extents(instances[:, ::-1]), 2: {}}
    document = acvr_labels(frames, scene.objects, {frame: f"{frame}.png" for frame in frames})
    assert list(document) == ["000000", "000001", "000002"]
    key = f"{table:06d}"
    assert document["000000"][key] == {
        "class": "dining table",
        "mask_id": table,
        "bounding_box": [3, 2, 19, 9],
        "num_pixels": 136,
    }
    assert document["000001"][key]["bounding_box"] == [12, 2, 28, 9]
    assert f"{window:06d}" not in document["000000"]
    assert document["000002"] == {"_metadata": {"mask_name": "2.png", "mask_channel": 0}}
    assert window not in labelled_ids(scene.objects)
