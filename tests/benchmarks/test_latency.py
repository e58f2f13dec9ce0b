"""The latency benchmark reports its figures and its environment."""

import json
import sys

import pytest

from benchmarks.latency import main


@pytest.mark.long
def test_latency_of_a_bundle_and_of_torch_is_reported_with_hardware_and_versions(
    tiny_bundle, tiny_checkpoint, tmp_path, monkeypatch
):
    output = tmp_path / "latency.json"
    options = ["--bundle", str(tiny_bundle), "--checkpoint", str(tiny_checkpoint), "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["latency", *options, "--json", str(output)])
    assert main() == 0
    result = json.loads(output.read_text())
    assert result["variants"].keys() == {"bundle_onnxruntime", "torch_eager"}
    assert all(variant["wall_ms_median"] > 0 for variant in result["variants"].values())
    assert result["hardware"]["processor"]
    assert result["versions"]["onnxruntime"] != "not installed"
