"""Commands of the workstation in an environment without their packages."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run_without_packages(*arguments):
    """Runs Python with its own library alone: -S leaves out site-packages."""
    return subprocess.run([sys.executable, "-S", *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["training.train", "export", "recipes.calibrated_confidence", "benchmarks.decode"])
def test_a_command_names_the_missing_package_and_its_extra_in_one_sentence(module):
    done = run_without_packages("-m", module)
    extra = "benchmarks" if module.startswith("benchmarks") else "training"
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: this command needs ")
    assert done.stderr.endswith(f", which is not installed: pip install '.[{extra}]'\n")
    assert done.stderr.count("\n") == 1


def test_a_program_that_imports_them_gets_the_exception():
    assert "ModuleNotFoundError" in run_without_packages("-c", "import training.train").stderr
