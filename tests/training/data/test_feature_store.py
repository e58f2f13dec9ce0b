"""The feature store: what is written, read and refused."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from training.data.feature_store import FeatureStore, StoreWriter
from training.errors import DataError

WIDTH = 3
SOURCE = {"made_by": "a test"}


def tokens_and_boxes(rows):
    """Features that float16 holds, and boxes."""
    return st.tuples(
        arrays(np.float16, (rows, WIDTH), elements=st.floats(-60000, 60000, width=16)),
        arrays(np.float32, (rows, 4), elements=st.floats(0, 4096, width=32)),
    )


images_of_a_store = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    st.integers(1, 5).flatmap(tokens_and_boxes),
    max_size=4,
)


def fill(folder, images, shard_images=3):
    with StoreWriter(folder, SOURCE, WIDTH, shard_images) as writer:
        for image, (tokens, boxes) in images.items():
            writer.add(image, tokens, boxes, 640, 480)


def random_features(count, rows=2):
    random = np.random.default_rng(0)
    return {
        f"{number}": (random.normal(size=(rows, WIDTH)), random.uniform(0, 99, (rows, 4))) for number in range(count)
    }


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=images_of_a_store, second=images_of_a_store, shard_images=st.integers(1, 3))
def test_a_store_returns_the_features_that_were_added(tmp_path_factory, first, second, shard_images):
    folder = tmp_path_factory.mktemp("stores") / "store"
    fill(folder, first, shard_images)
    fill(folder, {image: found for image, found in second.items() if image not in first}, shard_images)
    store = FeatureStore(folder)
    assert len(store) == len(first.keys() | second.keys())
    for image, (tokens, boxes) in {**second, **first}.items():
        assert image in store
        read = store.read(image)
        np.testing.assert_array_equal(read.features, tokens.astype(np.float32))
        np.testing.assert_array_equal(read.boxes_xyxy, boxes / np.array([640, 480] * 2, np.float32))
        assert read.image_size == (640, 480)


@pytest.mark.parametrize(
    ("tokens", "boxes", "complaint"),
    [
        (np.full((2, WIDTH), np.nan), np.ones((2, 4)), "features contain NaN"),
        (np.full((2, WIDTH), 1e6), np.ones((2, 4)), "features contain NaN or infinity"),
        (np.ones((2, WIDTH + 1)), np.ones((2, 4)), "features are 4 wide instead of 3"),
        (np.ones((0, WIDTH)), np.ones((0, 4)), r"features have the shape \(0, 3\)"),
        (np.ones((2, WIDTH)), np.ones((1, 4)), r"boxes have the shape \(1, 4\)"),
    ],
)
def test_malformed_features_are_refused_when_they_are_added(tmp_path, tokens, boxes, complaint):
    with (
        StoreWriter(tmp_path / "store", SOURCE, WIDTH) as writer,
        pytest.raises(DataError, match=rf"store, image 7: {complaint}"),
    ):
        writer.add("7", tokens, boxes, 640, 480)
    assert "7" not in FeatureStore(tmp_path / "store")


def test_an_image_cannot_be_added_twice(tmp_path):
    fill(tmp_path / "store", random_features(2))
    with pytest.raises(DataError, match="image 0: it is in the store already"):
        fill(tmp_path / "store", random_features(2))


def test_features_of_another_source_or_width_are_not_mixed(tmp_path):
    fill(tmp_path / "store", random_features(1))
    for source, width in (({"made_by": "another"}, WIDTH), (SOURCE, WIDTH + 1)):
        with pytest.raises(DataError, match=r"features of another source.*a test"):
            StoreWriter(tmp_path / "store", source, width)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "precious").write_text("thesis")
    with pytest.raises(DataError, match="not a feature store"):
        StoreWriter(tmp_path, SOURCE, WIDTH)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_error_for_a_missing_image_shows_an_id_of_the_store(tmp_path):
    fill(tmp_path / "store", {"COCO_7.jpg": random_features(1)["0"]})
    with pytest.raises(DataError, match=r"store, image 7: it has no features; its ids look like COCO_7\.jpg"):
        FeatureStore(tmp_path / "store").read("7")


@pytest.mark.parametrize("number", [np.nan, -np.inf])
@pytest.mark.parametrize(("array", "kind"), [("tokens", "features"), ("boxes", "boxes")])
def test_numbers_that_are_not_finite_are_refused_with_file_id_and_reason(tmp_path, array, kind, number):
    fill(tmp_path / "store", random_features(3))
    path = tmp_path / "store" / f"shard-00000.{array}.npy"
    values = np.load(path)
    values[3, 1] = number  # the second image's second row
    np.save(path, values)
    store = FeatureStore(tmp_path / "store")
    assert len(store.read("0").features) == 2
    assert len(store.read_batch(["2", "0"]).tokens) == 2
    complaint = rf"shard-00000\.tokens\.npy, image 1: {kind} contain NaN or infinity"
    with pytest.raises(DataError, match=complaint):
        store.read("1")
    with pytest.raises(DataError, match=complaint):
        store.read_batch(["2", "1"])


def test_facts_that_an_image_does_not_have_are_unknown_in_the_store(tmp_path):
    tokens, boxes = np.ones((2, WIDTH)), np.full((2, 4), 0.25)
    with StoreWriter(tmp_path / "store", SOURCE, WIDTH) as writer:
        writer.add("fractions", tokens, boxes, None, None)
        writer.add("pixels of an unknown size", tokens, 99 * boxes, None, None)
        writer.add("no boxes", tokens, None, 640, 480)
    store = FeatureStore(tmp_path / "store")
    np.testing.assert_array_equal(store.read("fractions").boxes_xyxy, boxes)
    for image in ("pixels of an unknown size", "no boxes"):
        assert store.read(image).boxes_xyxy is None
    assert [store.read(image).image_size for image in store.images()] == [None, None, (640, 480)]


def cut_short(folder):
    path = folder / "shard-00001.tokens.npy"
    path.write_bytes(path.read_bytes()[:-1])


def of_another_shape(folder):
    np.save(folder / "shard-00001.boxes.npy", np.zeros((3, 4), np.float32))


def index_of(**entry):
    return lambda folder: (folder / "shard-00001.json").write_text(json.dumps({"images": [entry]}))


def newer(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format_version": 9}))


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (cut_short, r"shard-00001\.tokens\.npy is cut short"),
        (of_another_shape, r"shard-00001\.boxes\.npy: float32 \(3, 4\) instead of float32 \(2, 4\)"),
        (lambda folder: (folder / "shard-00001.boxes.npy").unlink(), r"shard-00001\.boxes\.npy: no such file"),
        (lambda folder: (folder / "shard-00000.json").unlink(), r"shard-00000\.json: no such file"),
        (index_of(id="3", width=640, height=480), r"shard-00001\.json: an entry lacks id, rows, width or height"),
        (
            index_of(id="3", rows=2, width=640, height=0),
            r"shard-00001\.json, image 3: the photograph's size is 640 x 0",
        ),
        (lambda folder: (folder / "shard-00001.json").write_text("{"), r"shard-00001\.json is not JSON"),
        (newer, r"manifest\.json: format version 9"),
        (lambda folder: (folder / "manifest.json").unlink(), r"manifest\.json: no such file.*training\.features"),
    ],
)
def test_a_damaged_store_is_refused_with_the_file(tmp_path, spoil, complaint):
    folder = tmp_path / "store"
    fill(folder, random_features(4))
    spoil(folder)
    with pytest.raises(DataError, match=complaint):
        FeatureStore(folder).read_batch(["0", "3"])
