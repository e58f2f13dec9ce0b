"""Captions drawn by chance from results."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.sample_captions import main


def result(path: Path, images: int) -> Path:
    per_image = {f"{path.stem}-{number}.jpg": {"caption": f"caption {number}"} for number in range(images)}
    path.write_text(json.dumps({"models": {"first": {"per_image": per_image}, "second": {"per_image": {}}}}))
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["sample_captions", *map(str, arguments)])
    return main()


def test_the_same_seed_draws_the_same_images_of_each_file_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [result(tmp_path / "rooms.json", 30), result(tmp_path / "streets.json", 3)]
    tables = []
    for seed in (1, 1, 2):
        assert run(monkeypatch, *files, "--count", 5, "--seed", seed) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1] != tables[2]
    rows = [line.strip("| ").split(" | ") for line in tables[0].splitlines()[2:]]
    assert [row[0] for row in rows] == ["rooms"] * 5 + ["streets"] * 3
    numbers = [int(image.removeprefix("rooms-").removesuffix(".jpg")) for _, image, _ in rows[:5]]
    assert numbers == sorted(set(numbers))
    assert all(caption == f"caption {image.split('-')[1].removesuffix('.jpg')}" for _, image, caption in rows)


@pytest.mark.parametrize("content", ["[]", "{}", '{"models": {}}', '{"models": {"a": {"per_image": {"b": {}}}}}', "no"])
def test_another_file_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "other.json").write_text(content)
    assert run(monkeypatch, tmp_path / "other.json") == 1
    assert "other.json" in capsys.readouterr().err
