import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from training.datagen.household.ground_truth import MINIMUM_PIXELS, find_visible, labelled, labels, mask
from training.datagen.household.layout import furnish

indices = hnp.arrays(np.uint16, (24, 32), elements=st.sampled_from([0, 0, 1, 2, 7, 300]))


@settings(max_examples=20)
@given(index=indices)
def test_boxes_and_counts_are_those_of_the_pixels(index) -> None:
    visible = find_visible(index)
    for number in set(np.unique(index)) - {0}:
        rows, columns = np.nonzero(index == number)
        if len(rows) < MINIMUM_PIXELS:
            assert number not in visible
            continue
        seen = visible[int(number)]
        assert (seen.left, seen.top, seen.right, seen.bottom) == (columns.min(), rows.min(), columns.max(), rows.max())
        assert seen.pixels == len(rows)


@settings(max_examples=20)
@given(index=indices)
def test_mask_holds_the_labelled_objects_and_nothing_else(index) -> None:
    visible, wanted = find_visible(index), {1, 300}
    made = mask(index, visible, wanted)
    assert made.dtype == np.uint16
    assert set(np.unique(made)) - {0} == wanted & visible.keys()
    for number in wanted & visible.keys():
        assert np.array_equal(made == number, index == number)
    assert mask(index, visible, {1, 2}).dtype == np.uint8


def test_labels_name_each_labelled_object_by_the_same_number_in_every_frame() -> None:
    scene = furnish(np.random.default_rng(0), "kitchen", day=True)
    table = next(item.id for item in scene.items if item.shape.name == "dining table")
    window = next(item.id for item in scene.items if item.shape.name == "window")
    index = np.zeros((24, 32), np.uint16)
    index[2:10, 3:20], index[15:20, 0:10] = table, window
    frames = {0: find_visible(index), 1: find_visible(index[:, ::-1]), 2: {}}
    document = labels(frames, scene.items, {frame: f"{frame}.png" for frame in frames})
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
    assert window not in labelled(scene.items)
