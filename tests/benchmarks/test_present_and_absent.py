"""Captions judged by lists of present and absent objects."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.present_and_absent import main

LABELS = [
    {"image": "1.jpg", "objects": ["laptop", "door"], "absent": ["phone"]},
    {"image": "2.jpg", "objects": [], "absent": ["laptop", "monitor", "cabinet"]},
    {"image": "3.jpg", "objects": ["monitor"], "absent": ["laptop"]},
]
CAPTIONS = {
    "1.jpg": "a computer by two doors and a cat",  # computer and doors are present, of cats nothing is known
    "2.jpg": "a computer next to cupboards",  # both are absent
    "3.jpg": "a computer and a laptop",  # the monitor is a computer, and there is no laptop
}


def judged(tmp_path: Path, labels: list[dict[str, Any]], **models: dict[str, str]) -> Path:
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in labels))
    found = {
        name: {"per_image": {image: {"caption": caption} for image, caption in captions.items()}}
        for name, captions in models.items()
    }
    (tmp_path / "captions.json").write_text(json.dumps({"models": found}))
    return tmp_path / "captions.json"


def run(monkeypatch: pytest.MonkeyPatch, captions: Path) -> int:
    output = captions.with_name("result.json")
    labels = captions.with_name("labels.jsonl")
    monkeypatch.setattr(sys, "argv", ["judge", str(captions), "--labels", str(labels), "--json", str(output)])
    return main()


def test_a_word_is_right_with_a_present_class_and_wrong_if_all_its_classes_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = dict.fromkeys(CAPTIONS, "a room")
    assert run(monkeypatch, judged(tmp_path, LABELS, loud=CAPTIONS, silent=silent)) == 0
    models = json.loads((tmp_path / "result.json").read_text())["models"]
    assert models["loud"]["captions_with_absent"]["value"] == pytest.approx(2 / 3, abs=1e-4)
    assert models["loud"]["judged_mentions"] == 6
    assert models["loud"]["mentions_present"]["value"] == 0.5
    assert models["loud"]["absent_words"] == {"computer": 1, "cupboard": 1, "laptop": 1}
    assert models["silent"]["captions_with_absent"]["value"] == 0
    assert models["silent"]["judged_mentions"] == 0


def test_images_without_labels_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, judged(tmp_path, LABELS[1:], one=CAPTIONS)) == 1
    assert "no labels of 1 captioned images, for example 1.jpg" in capsys.readouterr().err
