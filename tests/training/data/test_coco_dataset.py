"""COCO as a data set to train on."""

import json

import cv2
import numpy as np
import pytest

from tests.training.small_coco import SPLITS, make_coco
from training.configs.schema import DataConfig
from training.data.datasets import open_dataset, provenance
from training.errors import DataError


@pytest.fixture
def data(tmp_path):
    return make_coco(tmp_path)


def opened(data, **options):
    return open_dataset(DataConfig(dataset="coco", options=options), data)


def annotations(path, ids, **changes):
    document = {
        "images": [{"id": i, "file_name": f"{i}.png"} for i in ids],
        "annotations": [{"image_id": i, "caption": f"picture {i}"} for i in ids],
        **changes,
    }
    path.write_text(json.dumps(document))
    return path.name


def test_karpathys_restval_is_trained_on_and_val_is_dev(data):
    dataset = opened(data, karpathy="coco/dataset_coco.json")
    assert len(dataset.split("train")) == SPLITS["train"] + SPLITS["restval"]
    assert (len(dataset.split("dev")), len(dataset.split("test"))) == (SPLITS["val"], SPLITS["test"])
    assert len(dataset.captions[dataset.split("test")[0]]) == 3


def test_cocos_own_caption_files_are_splits_and_name_the_folder(tmp_path):
    for folder, number in (("train2017", 1), ("val2017", 2)):
        (tmp_path / "coco" / folder).mkdir(parents=True)
        cv2.imwrite(str(tmp_path / "coco" / folder / f"{number}.png"), np.full((30, 40, 3), 90 * number, np.uint8))
    captions = {
        "train": annotations(tmp_path / "captions_train2017.json", [1]),
        "dev": annotations(tmp_path / "captions_val2017.json", [2]),
    }
    dataset = opened(tmp_path, captions=captions)
    dataset.check_photographs(["1", "2"])
    assert (dataset.split("train"), dataset.split("dev"), dataset.captions["2"]) == (["1"], ["2"], ["picture 2"])
    np.testing.assert_array_equal(dataset.read_images(["1", "2"])[:, 100, 100, 0], [90, 180])
    with pytest.raises(DataError, match="no image in split 'test'; there are train, dev"):
        dataset.split("test")


def listed(**options):
    return provenance(DataConfig(dataset="coco", options={"captions": {"train": "captions.json"}, **options}))


def test_the_manifest_lists_coco_unless_the_photographs_have_a_name_and_terms():
    assert [entry["name"] for entry in listed()] == ["COCO captions (Lin et al. 2014, Chen et al. 2015)"]
    own = {"name": "our kitchen", "terms": "not for publication"}
    assert listed(**own) == [own]


@pytest.mark.parametrize("option", ["name", "terms"])
def test_a_name_without_terms_is_refused_and_terms_without_a_name_too(option):
    with pytest.raises(ValueError, match="give name and terms together"):
        listed(**{option: "ours"})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [({}, r"captions_dev\.json, image 1: it is in another split"), ({"images": []}, "image 1: .* but no file_name")],
)
def test_an_image_in_two_splits_or_without_a_file_is_refused(tmp_path, changes, complaint):
    captions = {
        split: annotations(tmp_path / f"captions_{split}.json", [1, 2], **changes) for split in ("train", "dev")
    }
    with pytest.raises(DataError, match=complaint):
        opened(tmp_path, captions=captions)


def test_missing_photographs_are_counted_before_training_begins(data):
    dataset = opened(data, karpathy="coco/dataset_coco.json")
    images = dataset.split("train")
    dataset.check_photographs(images)
    for name in images[:2]:
        (data / "coco" / "val2014" / f"COCO_val2014_{int(name):012d}.jpg").unlink()
    with pytest.raises(DataError, match=rf"000000{images[0]}\.jpg, image {images[0]}: .* 2 images .* `photographs`"):
        dataset.check_photographs(images)
    with pytest.raises(DataError, match=f"image {images[0]}: No such file"):
        dataset.read_images(images[:1])
