"""The latency benchmark runs and says what it measured on."""

import json
import subprocess
import sys
from pathlib import Path


def test_latency_of_a_bundle_and_of_torch_are_reported_with_hardware_and_versions(
    tiny_bundle: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    output = tmp_path / "latency.json"
    command = [sys.executable, "-m", "benchmarks.latency", "--bundle", str(tiny_bundle), "--rounds", "1"]
    subprocess.run([*command, "--checkpoint", str(tiny_checkpoint), "--json", str(output)], check=True)
    result = json.loads(output.read_text())
    assert result["variants"].keys() == {"bundle_onnxruntime", "torch_eager"}
    assert all(variant["wall_ms_median"] > 0 for variant in result["variants"].values())
    assert result["hardware"]["processor"]
    assert result["versions"]["onnxruntime"] != "not installed"
