"""Which photographs count as taken indoors."""

import json
from pathlib import Path

from typer.testing import CliRunner

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


def test_a_photograph_with_furniture_and_without_animals_is_indoors(tmp_path: Path) -> None:
    path = instances(tmp_path / "i.json", ["furniture"], ["furniture", "animal"], ["person"], ["person", "kitchen"], [])
    result = CliRunner().invoke(main, [str(path), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    kept = json.loads((tmp_path / "out" / "i.json").read_text())
    assert [image["id"] for image in kept["images"]] == [0, 3]
    assert {annotation["image_id"] for annotation in kept["annotations"]} == {0, 3}
    assert len(kept["categories"]) == len(KINDS)


def test_another_file_is_refused_with_its_name(tmp_path: Path) -> None:
    for content in ("[]", "{}", "no JSON"):
        (tmp_path / "other.json").write_text(content)
        result = CliRunner().invoke(main, [str(tmp_path / "other.json"), "-o", str(tmp_path / "out")])
        assert result.exit_code == 1
        assert "other.json" in result.output
        assert not list((tmp_path / "out").iterdir())
