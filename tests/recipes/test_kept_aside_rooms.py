"""Rooms that are kept aside, with the objects that people name in them."""

import json
import sys
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from recipes.kept_aside_rooms import main
from training.data.held_out import kept_aside_rooms

ROOM = kept_aside_rooms()[0]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Data with the rooms that are kept aside, people's texts about one of them and about one that is not."""
    rooms = tmp_path / "data" / "nyu_rooms"
    rooms.mkdir(parents=True)
    questions = [
        {"file": ROOM, "questions": [{"question": "what is on the table?", "answer": "lamp, book"}] * 3},
        {"file": "trained.jpg", "questions": [{"question": "what is on the bed?", "answer": "pillow"}]},
    ]
    (rooms / "questions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in questions))
    boxes = [{"name": "lamp", "box": [0.5, 0.25, 0.25, 0.5]}, {"name": None, "box": [0.0, 0.0, 1.0, 1.0]}]
    said = [{"image": name, "sentences": [], "boxes": boxes} for name in (ROOM, "trained.jpg")]
    (rooms / "spatial_sentences.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in said))
    with zipfile.ZipFile(rooms / "images.zip", "w") as archive:
        for name in kept_aside_rooms():
            archive.writestr(name, cv2.imencode(".jpg", np.zeros((40, 80, 3), np.uint8))[1].tobytes())
    return tmp_path / "data"


def run(monkeypatch: pytest.MonkeyPatch, data: Path, output: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["kept_aside_rooms", "--data", str(data), "-o", str(output)])
    return main()


def test_rooms_kept_aside_are_written_with_what_people_name_in_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, data, tmp_path / "out") == 0
    written = json.loads((tmp_path / "out" / "instances.json").read_text())
    assert {image["file_name"] for image in written["images"]} == set(kept_aside_rooms())
    assert {path.name for path in (tmp_path / "out" / "images").iterdir()} == set(kept_aside_rooms())
    names = {category["id"]: category["name"] for category in written["categories"]}
    room = next(image["id"] for image in written["images"] if image["file_name"] == ROOM)
    found = {
        names[annotation["category_id"]]: annotation["bbox"]
        for annotation in written["annotations"]
        if annotation["image_id"] == room
    }
    assert found == {"lamp": [40.0, 10.0, 20.0, 20.0], "book": [0.0, 0.0, 80.0, 40.0], "table": [0.0, 0.0, 80.0, 40.0]}
    assert all(annotation["image_id"] == room for annotation in written["annotations"])


def test_an_entry_without_its_image_is_refused_with_the_files(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "nyu_rooms" / "spatial_sentences.jsonl").write_text('{"sentences": []}\n')
    assert run(monkeypatch, data, tmp_path / "out") == 1
    assert "spatial_sentences.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "out" / "instances.json").exists()
