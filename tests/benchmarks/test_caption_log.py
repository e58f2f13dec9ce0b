"""The benchmark of the caption log times every kind of search on a log of the size asked for."""

import json
import sys

import pytest

from benchmarks import caption_log


@pytest.mark.long
def test_every_kind_of_search_is_timed(tmp_path, monkeypatch):
    output = tmp_path / "log.json"
    monkeypatch.setattr(sys, "argv", ["caption_log", "--rows", "1500", "--rounds", "1", "--json", str(output)])
    assert caption_log.main() == 0
    result = json.loads(output.read_text())
    assert result["rows"] == 1500
    assert result["searches"]["a common word"]["found"] == 20
    assert result["searches"]["a word that is not there"]["found"] == 0
    assert all(timing["p95_ms"] >= timing["p50_ms"] > 0 for timing in result["searches"].values())
