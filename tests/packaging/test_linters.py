"""The ROS linters that PyPI has agree with ruff: `colcon test` runs them with the same settings."""

import sys
from pathlib import Path

import pytest

AMENT_FLAKE8 = Path(sys.prefix, "bin", "ament_flake8")


@pytest.mark.long
@pytest.mark.skipif(not AMENT_FLAKE8.exists(), reason="needs ament_flake8: the test extra")
def test_what_colcon_installs_passes_ament_flake8_and_a_fault_does_not(source_tree, run):
    lint = f"cd {source_tree} && exec {AMENT_FLAKE8} --config cmake/flake8.ini"
    checked = run("/bin/sh", "-c", lint)
    assert "smart_caption_ros/captioning/captioner.py" in checked.stdout
    assert "tests/" not in checked.stdout
    (source_tree / "launch" / "faulty.launch.py").write_text("print(unknown)\n")
    assert "F821" in run("/bin/sh", "-c", f"{lint} launch", check=False).stdout
