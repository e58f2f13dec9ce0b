"""The reader of coco_photographs, and what it refuses."""

import json

import pytest

from smart_caption_ros.imaging.preprocessing import Preprocessing
from tests.training.small_coco_photographs import make_coco_photographs
from training.data.coco_photographs import CocoPhotographs
from training.errors import DataError


@pytest.fixture
def root(tmp_path):
    return make_coco_photographs(tmp_path)


def rewrite(root, **changes):
    """Change the first entry."""
    path = root / "captions.jsonl"
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *others]))


def test_splits_have_the_photographs_that_people_described(root):
    dataset = CocoPhotographs().open(root.parent)
    assert dataset.split("dev") == ["dev_0.jpg", "dev_1.jpg", "dev_2.jpg", "dev_3.jpg"]
    assert dataset.split("train") == ["train_0.jpg"], "train_1.jpg has no caption"
    assert len(dataset.captions["dev_0.jpg"]) == 3
    assert dataset.objects["dev_0.jpg"] == ["dog"]
    assert dataset.domains["dev_0.jpg"] == "indoors"
    assert dataset.read_images(["dev_0.jpg", "dev_1.jpg"]).shape == (2, 224, 224, 3)
    assert dataset.read_images(["dev_0.jpg", "dev_1.jpg"], Preprocessing(96, 96)).shape == (2, 96, 96, 3)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"image": None}, "entry 1: image"),
        ({"image": "dev_1.jpg"}, "entry 4: image is missing, no text, or that of another entry"),
        ({"part": "test"}, "entry 1: part must be one of train, dev"),
        ({"sentences": "a dog"}, "sentences is no list of texts"),
        ({"indoor": "yes"}, "indoor true or false"),
        ({"objects": [""]}, "objects is no list of texts"),
    ],
)
def test_malformed_entries_are_named(root, changes, complaint):
    rewrite(root, **changes)
    with pytest.raises(DataError, match=complaint):
        CocoPhotographs().open(root.parent)


def test_missing_photographs_are_named(root):
    dataset = CocoPhotographs().open(root.parent)
    dataset.check_photographs(["dev_0.jpg"])
    with pytest.raises(DataError, match=r"images_256\.zip: 1 photographs are missing, for example nobody\.jpg"):
        dataset.check_photographs(["dev_0.jpg", "nobody.jpg"])
    with pytest.raises(DataError, match=r"nobody\.jpg"):
        dataset.read_images(["nobody.jpg"])


def test_photographs_known_to_be_noncommercial_are_measured_but_not_trained_on(root):
    licences = root.parent / "coco_val2017_captions" / "captions_val2017.json"
    licences.parent.mkdir()
    licences.write_text(json.dumps({"images": [{"id": number, "license": 2} for number in (0, 10)]}))
    chosen = CocoPhotographs(leave_out_noncommercial=True)
    captions = chosen.open(root.parent).captions
    assert "dev_0.jpg" in captions
    assert "train_0.jpg" not in captions
    assert "known to be non-commercial" in chosen.provenance[0]["terms"]
