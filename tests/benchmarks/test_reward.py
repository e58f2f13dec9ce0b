"""The reward's benchmark runs and reports both sides."""

import json
import subprocess
import sys
from pathlib import Path


def test_both_implementations_are_timed_and_compared(tmp_path: Path) -> None:
    output = tmp_path / "reward.json"
    command = [sys.executable, "-m", "benchmarks.reward", "--rounds", "1", "--json", str(output)]
    subprocess.run(command, check=True)
    result = json.loads(output.read_text())
    assert result["cpu_ms_median"].keys() == {"toolkit", "ids"}
    assert result["times_faster"] > 0
