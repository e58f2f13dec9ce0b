"""The benchmark of published models imports and measures them beside the default bundle."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import published_models
from tests.published_captioners import TINY


@pytest.mark.long
def test_time_memory_and_sizes_are_reported_beside_the_default_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = published_models.Published("git", TINY["git"], "CLIPImageProcessor", 32)
    monkeypatch.setattr(published_models, "MODELS", {"git-base": tiny})
    monkeypatch.setattr(published_models, "PRECISIONS", ("float32",))
    output = tmp_path / "models.json"
    monkeypatch.setattr(sys, "argv", ["published_models", "--only", "git-base", "--rounds", "1", "--json", str(output)])
    assert published_models.main() == 0
    model = json.loads(output.read_text())["models"]["git-base"]
    assert model["float32"]["steps"] == published_models.WORDS
    assert 0 < model["float32"]["cpu_ms"] < model["default_ms"] * 5
    assert model["float32"]["vision_mb"] < model["float32"]["bundle_mb"] < 5
    assert model["float32"]["import"]["peak_rss_mb"] > 100


def test_an_unknown_model_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["published_models", "--only", "florence"])
    assert published_models.main() == 2
    assert "'florence' is none of git-base" in capsys.readouterr().err
