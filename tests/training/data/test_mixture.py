"""Several data sets trained as one."""

import json
from collections import Counter

import cv2
import numpy as np
import pytest

from tests.training.small_coco import make_coco
from tests.training.small_flickr8k import SIZES, make_data, write_config
from tests.training.small_runs import trained
from training.configs.schema import DataConfig
from training.data.datasets import limit_sentence_uses, open_dataset, provenance
from training.data.feature_store import FeatureStore
from training.engine.experiment import load_run
from training.errors import ConfigError, DataError

FLICKR8K = {"dataset": "flickr8k"}
COCO = {"dataset": "coco", "options": {"karpathy": "coco/dataset_coco.json"}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = make_data(tmp_path_factory.mktemp("data"))
    make_coco(root)
    make_home(root / "home")
    return root


def make_home(root):
    """Write two photographs with a caption each, in the format of COCO."""
    (root / "000000").mkdir(parents=True)
    images = [{"id": frame, "file_name": f"000000/{frame:06d}.jpg"} for frame in range(2)]
    for image in images:
        cv2.imwrite(
            str(root / str(image["file_name"])), np.full((60, 80, 3), 50 + 100 * int(str(image["id"])), np.uint8)
        )
    annotations = [{"id": i, "image_id": i, "caption": "A cup on a table."} for i in range(2)]
    (root / "captions.json").write_text(json.dumps({"images": images, "annotations": annotations}))


def home_in(folder):
    options = {"captions": {"train": str(folder / "captions.json")}, "photographs": str(folder)}
    return {"dataset": "coco", "options": options}


def mixture(data, scored=("photos",), **sources):
    everything = {"photos": FLICKR8K, "coco": COCO, "home": home_in(data / "home")}
    return {"sources": {**everything, **sources}, "scored": list(scored)}


def opened(data, **changes):
    return open_dataset(DataConfig(dataset="mixture", options=mixture(data, **changes)), data)


def test_sources_are_trained_on_as_often_as_they_are_repeated_and_the_scored_ones_are_dev(data):
    dataset = opened(data)
    train = dataset.split("train")
    assert [sum(image.startswith(f"{name}/") for image in train) for name in ("photos", "coco", "home")] == [12, 10, 2]
    assert dataset.split("dev") == [f"photos/dev_{index}.jpg" for index in range(SIZES["dev"])]
    assert all(dataset.captions[image] for image in train)
    repeated = opened(data, home={**home_in(data / "home"), "repeat": 3}, photos={**FLICKR8K, "repeat": 0})
    train = repeated.split("train")
    assert [sum(image.startswith(f"{name}/") for image in train) for name in ("photos", "coco", "home")] == [0, 10, 6]
    assert train.count("home/0") == 3
    assert repeated.source_of("home/0") == "home"
    assert repeated.split("dev") == dataset.split("dev")


def test_weights_are_those_of_the_sources_and_1_elsewhere(data):
    dataset = opened(data, coco={**COCO, "weight": 0.4, "repeat": 2})
    images = dataset.split("train")
    weights = dataset.caption_weights(images)
    assert weights.dtype == np.float32
    for image, weight in zip(images, weights, strict=True):
        assert weight == pytest.approx(0.4 if image.startswith("coco/") else 1)
    alone = open_dataset(DataConfig(dataset="flickr8k"), data)
    assert alone.caption_weights(alone.split("train")).tolist() == [1.0] * SIZES["train"]


def test_no_sentence_has_more_photographs_than_the_mixture_allows():
    names = [f"p{number}" for number in range(6)]
    shared = {name: ["A room.", "A room with a table.", f"a sofa in room {name}"] for name in names}
    shared["p5"][1] = "a room with a table"
    captions = limit_sentence_uses(shared, 2)
    left = Counter(sentence.lower().strip(".") for name in names for sentence in captions[name])
    assert left["a room"] == left["a room with a table"] == 2
    assert all(f"a sofa in room {name}" in captions[name] for name in names)


def test_errors_of_missing_data_name_the_source(data, tmp_path):
    with pytest.raises(DataError, match=r"source home: .*nowhere/captions.json: no such file"):
        opened(data, home=home_in(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="source home: no image in split 'dev'; there are train"):
        opened(data, scored=("photos", "home")).split("dev")
    make_home(tmp_path / "home")
    (tmp_path / "home" / "000000" / "000001.jpg").unlink()
    broken = opened(data, home=home_in(tmp_path / "home"))
    with pytest.raises(DataError, match=r"source home: .*000001.jpg"):
        broken.check_photographs(broken.split("train"))
    with pytest.raises(DataError, match=r"source home: .*000001.jpg"):
        broken.read_images(["photos/train_0.jpg", "home/1"])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"sources": {}}, "sources: name at least one"),
        ({"sources": {"a/b": FLICKR8K}}, "a source's name is a word without a slash"),
        (
            {"sources": {"a": {"dataset": "mixture"}}},
            "sources: a: dataset must be one of flickr8k, folder, table, coco, coco_photographs",
        ),
        ({"sources": {"a": {**FLICKR8K, "weight": 0}}}, "weight must be a positive number, not 0; repeat: 0 leaves"),
        ({"sources": {"a": FLICKR8K}, "max_sentence_uses": -1}, "max_sentence_uses must be 0 or more, not -1"),
        ({"sources": {"a": {**FLICKR8K, "repeat": 0}}}, "sources: all have repeat 0"),
        ({"sources": {"a": {"dataset": "coco"}}}, "sources: a: options: give karpathy"),
        ({"sources": {"a": {"dataset": "folder", "options": {"folder": 3}}}}, "a: options: folder: expected str"),
        ({"sources": {"a": FLICKR8K}, "scored": ["b"]}, "scored: 'b' is none of the sources, a"),
    ],
)
def test_a_malformed_mixture_is_refused_with_the_place(tmp_path, options, complaint):
    config = write_config(tmp_path / "config.yaml", data={"dataset": "mixture", "options": options})
    with pytest.raises(ConfigError, match=complaint):
        load_run(config)


def test_the_provenance_of_a_mixture_lists_every_source(data):
    names = [entry["name"] for entry in provenance(DataConfig(dataset="mixture", options=mixture(data)))]
    assert [any(part in name for name in names) for part in ("Flickr8k", "COCO")] == [True] * 2


def test_a_mixture_is_trained_on_and_its_sources_share_features_with_other_mixtures(data, tmp_path):
    phase = {"name": "xe", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 6}
    both = mixture(data)
    alone = {"sources": {"photos": FLICKR8K}, "scored": ["photos"]}
    for name, options in (("both", both), ("alone", alone)):
        data_config = {"dataset": "mixture", "options": options, "minimum_count": 1, "max_words": 10}
        assert trained(tmp_path / name, data, phase, data=data_config, cache=tmp_path / "features").result.exists()
    (folder,) = (tmp_path / "features").iterdir()  # one network
    assert len(FeatureStore(folder)) >= 12 + 10 + 2 + 4
