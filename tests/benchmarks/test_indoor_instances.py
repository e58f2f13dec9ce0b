"""Selection of indoor photographs."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.indoor_instances import main

KINDS = ["furniture", "animal", "person", "kitchen"]


def instances(path: Path, *photographs: list[str]) -> Path:
    """An instance file of photographs that show an object of each of these supercategories."""
    document = {
        "categories": [{"id": number, "name": kind, "supercategory": kind} for number, kind in enumerate(KINDS)],
        "images": [{"id": image, "file_name": f"{image}.jpg"} for image in range(len(photographs))],
        "annotations": [
            {"image_id": image, "category_id": KINDS.index(kind)}
            for image, kinds in enumerate(photographs)
            for kind in kinds
        ],
    }
    path.write_text(json.dumps(document))
    return path


def run(monkeypatch: pytest.MonkeyPatch, path: Path, output: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["indoor_instances", str(path), "-o", str(output)])
    return main()


def test_photograph_with_furniture_and_without_animals_is_indoor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = instances(tmp_path / "i.json", ["furniture"], ["furniture", "animal"], ["person"], ["person", "kitchen"], [])
    assert run(monkeypatch, path, tmp_path / "out") == 0
    kept = json.loads((tmp_path / "out" / "i.json").read_text())
    assert [image["id"] for image in kept["images"]] == [0, 3]
    assert {annotation["image_id"] for annotation in kept["annotations"]} == {0, 3}
    assert len(kept["categories"]) == len(KINDS)


def test_another_file_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in ("[]", "{}", "no JSON"):
        (tmp_path / "other.json").write_text(content)
        assert run(monkeypatch, tmp_path / "other.json", tmp_path / "out") == 1
        assert "other.json" in capsys.readouterr().err
        assert not list((tmp_path / "out").iterdir())
