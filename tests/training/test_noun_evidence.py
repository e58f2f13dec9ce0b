"""``python -m training.noun_evidence``: what is known of photographs, and the files that training reads."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.recipes.caption_sets.small_caption_data import make_caption_data
from training.data.noun_evidence import read_noun_evidence
from training.errors import DataError
from training.noun_evidence import main


def run(monkeypatch: pytest.MonkeyPatch, data: Path, output: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["noun_evidence", "-o", str(output), "--data", str(data)])
    return main()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_caption_data(tmp_path_factory.mktemp("data"))
    boxes = {"image": "image1.jpg", "sentences": [], "boxes": [{"name": "mirror", "box": [0, 0, 1, 1]}]}
    with (folder / "nyu_rooms" / "spatial_sentences.jsonl").open("w") as stream:
        stream.write(json.dumps(boxes) + "\n")
    return folder


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, data, folder) == 0
    return folder


def test_what_people_answer_and_box_is_shown_and_what_nobody_finds_is_not(output: Path) -> None:
    room = read_noun_evidence(output / "nyu_rooms.json")["image1.jpg"]
    assert {"table", "lamp", "book", "chair", "mirror", "wall"} <= room.shown
    assert "bed" in room.decided.object_of
    assert "bed" not in room.shown | room.possible
    assert not room.shown & room.possible


def test_a_room_whose_kind_is_known_is_no_other_and_one_that_is_unknown_may_be_any(output: Path) -> None:
    rooms = read_noun_evidence(output / "rooms.json")
    assert {"bedroom", "bed", "room"} <= rooms["scenes-000003"].shown
    assert "kitchen" not in rooms["scenes-000003"].shown | rooms["scenes-000003"].possible
    unknown = {image: known for image, known in rooms.items() if {"kitchen", "bedroom"} <= known.possible}
    assert all(image.startswith("nyu_rooms-") for image in unknown)


def test_a_place_that_is_not_inside_a_building_is_left_out(output: Path) -> None:
    assert "scenes-000002" not in read_noun_evidence(output / "rooms.json")


def test_both_files_of_rooms_say_the_same(output: Path) -> None:
    rooms, nyu = (read_noun_evidence(output / f"{name}.json") for name in ("rooms", "nyu_rooms"))
    assert rooms["nyu_rooms-image1"].shown == nyu["image1.jpg"].shown


def test_labels_and_captions_tell_cocos_classes_and_the_dev_part_is_left_out(data: Path, output: Path) -> None:
    found = read_noun_evidence(output / "coco_photographs.json")
    entries = [json.loads(line) for line in (data / "coco_photographs" / "captions.jsonl").read_text().splitlines()]
    parts = {entry["image"]: entry for entry in entries}
    assert found
    for image, known in found.items():
        assert parts[image]["part"] == "train"
        for name in parts[image]["objects"]:
            assert {noun for noun, of in known.decided.object_of.items() if of == name} <= known.shown
    decided = next(iter(found.values())).decided
    assert decided.objects({"cat", "kitten"}) == {"cat"}


def test_the_same_command_gives_the_same_files(
    data: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, data, tmp_path) == 0
    for path in output.glob("*.json"):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_missing_data_is_named_in_one_sentence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(data, tmp_path / "data")
    (tmp_path / "data" / "lexicon" / "chair_synonyms.txt").unlink()
    assert run(monkeypatch, tmp_path / "data", tmp_path / "out") == 1
    said = capsys.readouterr().err
    assert "chair_synonyms.txt" in said
    assert "Traceback" not in said


GOOD = {"noun_evidence": 1, "nouns": {"bed": "bed"}, "background": [], "images": {"a": {"shown": [], "possible": []}}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"noun_evidence": 2}, "no noun evidence of version 1"),
        ({"nouns": ["bed"]}, "nouns is missing or no object"),
        ({"background": ["wall"]}, "'wall' is not among nouns"),
        ({"images": []}, "images is missing"),
        ({"images": {"a": None}}, "image a: expected shown and possible"),
        ({"images": {"a": {"shown": ["bed"]}}}, "image a: possible is missing"),
    ],
)
def test_a_malformed_file_is_refused_with_the_place(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(GOOD))
    assert list(read_noun_evidence(path)) == ["a"]
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(DataError, match=reason):
        read_noun_evidence(path)
