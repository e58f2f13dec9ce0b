"""Generated data is a data set that training reads."""

import numpy as np
import pytest

from benchmarks import generated_data
from benchmarks.generated_data import CAPTIONS_PER_IMAGE, STORE, DataSize, write_data
from training.configs.schema import DataConfig
from training.data.datasets import open_dataset
from training.data.feature_store import FeatureStore
from training.data.tokenizer import RULES

SIZE = DataSize(images=23, words=40, tokens=7, token_width=12)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(generated_data, "_SHARD_IMAGES", 10)
    monkeypatch.setattr(generated_data, "_DISTINCT_PHOTOGRAPHS", 3)
    return tmp_path, DataConfig(**write_data(tmp_path, SIZE, seed=1, photographs=True))


def test_captions_have_six_to_seventeen_words_of_the_vocabulary(data):
    dataset = open_dataset(data[1], data[0])
    images = dataset.split("train")
    captions = [RULES["spacy"].words(caption) for image in images for caption in dataset.captions[image]]
    assert len(captions) == SIZE.images * CAPTIONS_PER_IMAGE
    assert {len(words) for words in captions} <= set(range(6, 18))
    counts = np.unique([word for words in captions for word in words], return_counts=True)
    assert set(counts[0]) <= {f"w{index}" for index in range(SIZE.words)}
    assert counts[0][counts[1].argmax()] in ("w0", "w1", "w2")  # Zipf's law


def test_every_image_has_features_and_a_photograph(data):
    dataset, store = open_dataset(data[1], data[0]), FeatureStore(data[0] / STORE)
    images = [*dataset.split("train"), *dataset.split("dev")]
    for image in images:
        regions = store.read(image)
        assert regions.features.shape == (SIZE.tokens, SIZE.token_width)
        assert regions.boxes_xyxy is not None
    dataset.check_photographs(images)
    assert dataset.read_images(images[-2:]).shape == (2, 224, 224, 3)
