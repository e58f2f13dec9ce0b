"""The reader of looked_at: several archives, parts, lists of things, and what it refuses."""

import json

import pytest

from tests.training.small_looked_at import make_looked_at
from training.data import looked_at
from training.data.looked_at import LookedAt
from training.errors import DataError


@pytest.fixture
def data(tmp_path):
    return make_looked_at(tmp_path)


def test_photographs_of_several_archives_are_one_data_set(data):
    dataset = LookedAt().open(data)
    assert dataset.split("train") == ["looked_at/a.jpg", "nyu_rooms/b.jpg"], "black and white pictures are left out"
    assert dataset.split("dev") == ["looked_at/c.jpg", "looked_at/d.jpg"]
    assert dataset.captions["looked_at/a.jpg"] == ("a white door", "a door in a hallway")
    assert dataset.things["nyu_rooms/b.jpg"] == ("desk", "laptop", "chair")
    dataset.check_photographs(dataset.captions)
    assert dataset.read_image("nyu_rooms/b.jpg").shape == (60, 80, 3)
    assert dataset.photographs.key("nyu_rooms/b.jpg") != dataset.photographs.key("looked_at/a.jpg")


def test_photographs_that_show_a_measured_one_are_in_no_split(data, monkeypatch):
    monkeypatch.setattr(looked_at, "excluded_photographs", lambda folder: {"b.jpg"} if folder == "nyu_rooms" else ())
    assert LookedAt().open(data).split("train") == ["looked_at/a.jpg"]


def test_sources_are_chosen_and_the_manifest_names_the_terms_of_those_that_are_trained_on(data):
    chosen = LookedAt(sources=["door_detect", "spot_homes"])
    assert [*chosen.open(data).captions] == ["looked_at/a.jpg", "looked_at/c.jpg"]
    captions, doors = chosen.provenance
    assert captions["terms"] == "CC0"
    assert doors == {"name": "pictures door_detect: Open Images through DoorDetect", "terms": "CC BY 2.0"}
    assert any("NYU" in entry["name"] for entry in LookedAt().provenance)
    with pytest.raises(DataError, match="no photograph of nothing"):
        LookedAt(sources=["nothing"]).open(data)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"data_set": "other"}, "entry 1: data_set or part is unknown"),
        ({"part": "test"}, "entry 1: data_set or part is unknown"),
        ({"captions": "a door"}, "entry 1: captions is no list of texts"),
        ({"image": "grey.jpg"}, "entry 2: .* the image is another entry's"),
        ({"things": None}, "entry 1: things is missing"),
    ],
)
def test_malformed_entries_are_named(data, changes, complaint):
    path = data / "looked_at" / "captions.jsonl"
    first, *others = path.read_text().splitlines()
    entry = {key: value for key, value in {**json.loads(first), **changes}.items() if value is not None}
    path.write_text("\n".join([json.dumps(entry), *others]))
    with pytest.raises(DataError, match=complaint):
        LookedAt().open(data)


@pytest.mark.needs_data
def test_no_kept_room_and_no_dev_photograph_is_trained_on(data_dir):
    from training.data.coco_photographs import CocoPhotographs
    from training.data.held_out import kept_aside_rooms

    dataset = LookedAt().open(data_dir)
    train, dev = set(dataset.split("train")), set(dataset.split("dev"))
    assert not train & dev
    assert not {f"nyu_rooms/{name}" for name in kept_aside_rooms()} & (train | dev)
    assert not {f"coco_photographs/{name}" for name in CocoPhotographs().open(data_dir).split("dev")} & train
    assert len(train) > 8000
    of_sources = [LookedAt(sources=[source]).open(data_dir) for source in looked_at.TERMS]
    assert sum(len(dataset.split("train")) for dataset in of_sources) == len(train)
