"""The training benchmark reports its figures and its environment."""

import json
import subprocess
import sys
from pathlib import Path

from tests.training.small_flickr8k import write_config


def test_both_objectives_and_the_share_of_the_reward_are_reported_with_hardware_and_versions(tmp_path: Path) -> None:
    config, output = write_config(tmp_path / "config.yaml"), tmp_path / "training.json"
    command = [sys.executable, "-m", "benchmarks.training", str(config), "--threads", "1", "--steps", "2"]
    command += ["--images", "40", "--words", "60", "--seed", "3", "--json", str(output)]
    subprocess.run(command, check=True)
    result = json.loads(output.read_text())
    assert result["objectives"].keys() == {"cross_entropy", "self_critical"}
    assert all(objective["images_per_second"] > 0 for objective in result["objectives"].values())
    assert 0 < result["objectives"]["self_critical"]["reward_share_of_step"] < 1
    assert result["seed"] == 3
    assert result["hardware"]["processor"]
    assert result["versions"]["torch"] != "not installed"
