"""Batches of stored features and the inputs of an experiment."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_model import tiny_smart
from training.data.feature_store import FeatureStore
from training.data.feature_store_writer import StoreWriter
from training.data.regions import Regions
from training.data.stored_features import StoredFeatures, open_batches, pad_regions
from training.errors import DataError
from training.models.captioner import Captioner

WIDTH = 24


def regions_of(
    *counts: int, size: tuple[int, int] | None = (640, 480), boxes: bool = True, seed: int = 1
) -> list[Regions]:
    random = np.random.default_rng(seed)
    return [
        Regions(
            random.normal(size=(count, WIDTH)).astype(np.float32),
            random.uniform(0, 1, (count, 4)).astype(np.float32) if boxes else None,
            image_size=size,
        )
        for count in counts
    ]


class InMemory:
    """Features in a dictionary by image id."""

    width = WIDTH

    def __init__(self, regions: dict[str, Regions]) -> None:
        self.regions = regions

    def __contains__(self, image: str) -> bool:
        return image in self.regions

    def read(self, image: str) -> Regions:
        return self.regions[image]


class NeedsBoxes(Captioner):
    needs_boxes = True


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_features_are_padded_with_their_boxes_and_a_mask_says_where(counts: list[int]) -> None:
    regions = regions_of(*counts)
    batch = pad_regions(regions)
    assert batch.values.shape == (len(counts), max(counts), WIDTH)
    assert (batch.mask is None) == (len(set(counts)) == 1)
    assert batch.mask is None or batch.mask.tolist() == [[n < count for n in range(max(counts))] for count in counts]
    assert batch.boxes_xyxy is not None
    assert batch.boxes_xyxy.dtype == torch.float32
    for row, (count, found) in enumerate(zip(counts, regions, strict=True)):
        np.testing.assert_array_equal(batch.values[row, :count], found.features)
        np.testing.assert_array_equal(batch.boxes_xyxy[row, :count], found.boxes_xyxy)
        assert not batch.boxes_xyxy[row, count:].any()
        assert not batch.values[row, count:].any()


def test_boxes_are_unknown_where_an_image_of_the_batch_has_none() -> None:
    whole, without = regions_of(3), regions_of(2, size=None, boxes=False)
    batch = pad_regions([*whole, *without])
    assert batch.boxes_xyxy is None


def test_an_image_without_the_boxes_that_the_family_needs_is_refused_by_its_id() -> None:
    features = InMemory({"a": regions_of(3)[0], "b": regions_of(3, boxes=False)[0]})
    assert len(open_batches(features, ["a"], NeedsBoxes).read(np.arange(1)).values) == 1
    assert len(open_batches(features, ["a", "b"], Captioner).read(np.arange(2)).values) == 2
    with pytest.raises(DataError, match=r"image b have no boxes.*NeedsBoxes needs boxes; add them"):
        open_batches(features, ["a", "b"], NeedsBoxes).read(np.arange(2))


IMAGES = [(rows, boxes, size) for rows in (1, 3, 4) for boxes in (True, False) for size in ((640, 480), (100, 7), None)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> FeatureStore:
    """A store of an image of each kind, in shards of 4 images; the ids are places in ``IMAGES``."""
    folder = tmp_path_factory.mktemp("batches") / "store"
    with StoreWriter(folder, {}, WIDTH, shard_images=4) as writer:
        for image, (rows, boxes, size) in enumerate(IMAGES):
            (found,) = regions_of(rows, seed=image)
            pixels = found.boxes_xyxy * np.array((size or (1, 1)) * 2, np.float32) if boxes else None
            writer.add(f"{image}", found.features, pixels, *(size or (None, None)))
    return FeatureStore(folder)


@given(st.lists(st.integers(0, len(IMAGES) - 1), min_size=1, max_size=12), st.data())
def test_batches_of_a_store_are_its_images_one_by_one(
    store: FeatureStore, images: list[int], data: st.DataObject
) -> None:
    names = [f"{image}" for image in images]
    places = data.draw(st.lists(st.integers(0, len(images) - 1), min_size=1, max_size=8))
    batch = open_batches(store, names, Captioner).read(np.array(places))
    expected = pad_regions([store.read(names[place]) for place in places])
    assert batch.values.dtype == torch.float16
    for found, wanted in zip(batch, expected, strict=True):
        if wanted is None:
            assert found is None
        else:
            assert found is not None
            assert torch.equal(found.to(wanted.dtype), wanted)


def test_images_of_a_store_without_the_boxes_that_the_family_needs_are_refused_when_it_is_opened(
    store: FeatureStore,
) -> None:
    lacking = IMAGES.index((1, False, (640, 480)))
    open_batches(store, ["0"], NeedsBoxes)
    with pytest.raises(DataError, match=rf"image {lacking} have no boxes"):
        open_batches(store, ["0", f"{lacking}"], NeedsBoxes)


def test_features_of_another_width_than_the_captioners_are_refused_with_both_widths() -> None:
    features = InMemory({"5": regions_of(3)[0]})
    message = r"stored features are 24 wide, but the visual tokens of this Smart are 40 wide"
    with pytest.raises(DataError, match=message):
        open_batches(features, ["5"], tiny_smart(token_width=40))  # type: ignore[arg-type]


TOKEN_WIDTH = 3
SPLITS = {"train": ["0", "1", "2"], "dev": ["3", "4"]}


@pytest.fixture
def small_store(tmp_path: Path) -> FeatureStore:
    """Five images; image 4 has no boxes."""
    random = np.random.default_rng(0)
    with StoreWriter(tmp_path / "small_store", {}, TOKEN_WIDTH) as writer:
        for image in range(5):
            tokens, boxes = random.normal(size=(image + 1, TOKEN_WIDTH)), random.uniform(size=(image + 1, 4))
            writer.add(f"{image}", tokens, None if image == 4 else boxes, 1, 1)
    return FeatureStore(tmp_path / "small_store")


def test_batches_are_images_of_their_split_and_the_captioner_gets_float32(small_store: FeatureStore) -> None:
    inputs = StoredFeatures(small_store, SPLITS, {})
    for batch, images in (
        (inputs.training_batch(np.array([2, 0])), ["2", "0"]),
        (inputs.dev_batch(np.array([0])), ["3"]),
        (inputs.dev_batch(np.array([1])), ["4"]),
    ):
        visual = inputs.visual(batch)
        assert visual.tokens.dtype == torch.float32
        for tokens, image in zip(visual.tokens, images, strict=True):
            features = small_store.read(image).features
            np.testing.assert_array_equal(tokens[: len(features)], features)


@pytest.mark.parametrize("splits", [{"train": ["9", "0"]}, {"train": ["0"], "dev": ["1", "9"]}])
def test_images_without_features_are_refused_before_training(
    small_store: FeatureStore, splits: dict[str, list[str]]
) -> None:
    with pytest.raises(DataError, match=f"features: {list(splits)[-1]}: no features of 1 images, for example image 9"):
        StoredFeatures(small_store, splits, {})


def test_pooled_features_are_the_mean_of_an_images_regions(small_store: FeatureStore) -> None:
    inputs = StoredFeatures(small_store, SPLITS, {})
    pooled = inputs.pooled(np.array([2, 0]))
    expected = [small_store.read(image).features.astype(np.float32).mean(axis=0) for image in ("2", "0")]
    np.testing.assert_allclose(pooled, expected, rtol=1e-5)
    assert inputs.pooled_key() == StoredFeatures(small_store, SPLITS, {}).pooled_key()
    others = {**SPLITS, "train": ["0", "1", "3"]}
    assert inputs.pooled_key() != StoredFeatures(small_store, others, {}).pooled_key()
