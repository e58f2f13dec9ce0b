"""The ROS linters that PyPI has agree with ruff: `colcon test` runs them with the same settings."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.packaging.conftest import Run

ROOT = Path(__file__).resolve().parents[2]
AMENT_FLAKE8 = Path(sys.prefix, "bin", "ament_flake8")


@pytest.mark.skipif(not AMENT_FLAKE8.exists(), reason="needs ament_flake8: the test extra")
def test_what_colcon_installs_passes_ament_flake8_and_a_fault_does_not(source_tree: Path, run: Run) -> None:
    lint = ("/bin/sh", "-c", f"cd {source_tree} && exec {AMENT_FLAKE8} --config cmake/flake8.ini")
    checked = run(*lint)
    assert "smart_caption_ros/captioning/captioner.py" in checked.stdout
    assert "tests/" not in checked.stdout
    (source_tree / "launch" / "faulty.launch.py").write_text("print(unknown)\n")
    assert "F821" in run(*lint, check=False).stdout


def test_every_linter_of_package_xml_is_found_by_ament_lint_auto() -> None:
    depends = {tag.text for tag in ElementTree.parse(ROOT / "package.xml").getroot().iter("test_depend")}
    assert {"ament_cmake_flake8", "ament_cmake_lint_cmake", "ament_cmake_xmllint", "ament_lint_auto"} <= depends
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert cmake.index("cmake/flake8.ini") < cmake.index("ament_lint_auto_find_test_dependencies()")
