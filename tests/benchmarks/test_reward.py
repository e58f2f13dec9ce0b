"""The reward benchmark reports both implementations."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import reward


def test_both_implementations_are_timed_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "reward.json"
    monkeypatch.setattr(reward, "CORPUS_IMAGES", 100)
    monkeypatch.setattr(sys, "argv", ["reward", "--rounds", "1", "--json", str(output)])
    assert reward.main() == 0
    result = json.loads(output.read_text())
    assert result["cpu_ms_median"].keys() == {"toolkit", "ids"}
    assert result["times_faster"] > 0
