"""Stored features as the visual inputs of training."""

from pathlib import Path

import numpy as np
import pytest
import torch

from training.data.feature_inputs import StoredFeatures
from training.data.feature_store import FeatureStore
from training.data.feature_store_writer import StoreWriter
from training.errors import DataError
from training.models.captioner import Captioner

WIDTH = 3
SPLITS = {"train": ["0", "1", "2"], "dev": ["3", "4"]}


class NeedsBoxes(Captioner):
    needs_boxes = True


@pytest.fixture
def store(tmp_path: Path) -> FeatureStore:
    """Five images; image 4 has no boxes."""
    random = np.random.default_rng(0)
    with StoreWriter(tmp_path / "store", {}, WIDTH) as writer:
        for image in range(5):
            tokens, boxes = random.normal(size=(image + 1, WIDTH)), random.uniform(size=(image + 1, 4))
            writer.add(f"{image}", tokens, None if image == 4 else boxes, 1, 1)
    return FeatureStore(tmp_path / "store")


def test_batches_are_images_of_their_split_and_the_captioner_gets_float32(store: FeatureStore) -> None:
    inputs = StoredFeatures(store, SPLITS, {})
    for batch, images in (
        (inputs.training_batch(np.array([2, 0])), ["2", "0"]),
        (inputs.dev_batch(np.array([0])), ["3"]),
        (inputs.dev_batch(np.array([1])), ["4"]),
    ):
        visual = inputs.visual(batch)
        assert visual.tokens.dtype == torch.float32
        for tokens, image in zip(visual.tokens, images, strict=True):
            features = store.read(image).features
            np.testing.assert_array_equal(tokens[: len(features)], features)


@pytest.mark.parametrize("splits", [{"train": ["9", "0"]}, {"train": ["0"], "dev": ["1", "9"]}])
def test_images_without_features_are_refused_before_training(store: FeatureStore, splits: dict[str, list[str]]) -> None:
    with pytest.raises(DataError, match=f"features: {list(splits)[-1]}: no features of 1 images, for example image 9"):
        StoredFeatures(store, splits, {})


def test_an_image_without_what_the_family_needs_is_refused_before_training(store: FeatureStore) -> None:
    with pytest.raises(DataError, match=r"image 4 have no boxes.*NeedsBoxes needs boxes"):
        StoredFeatures(store, SPLITS, {}, NeedsBoxes)


def test_pooled_features_are_the_mean_of_an_images_regions(store: FeatureStore) -> None:
    inputs = StoredFeatures(store, SPLITS, {})
    pooled = inputs.pooled(np.array([2, 0]))
    expected = [store.read(image).features.astype(np.float32).mean(axis=0) for image in ("2", "0")]
    np.testing.assert_allclose(pooled, expected, rtol=1e-5)
    assert inputs.pooled_key() == StoredFeatures(store, SPLITS, {}).pooled_key()
    others = {**SPLITS, "train": ["0", "1", "3"]}
    assert inputs.pooled_key() != StoredFeatures(store, others, {}).pooled_key()
