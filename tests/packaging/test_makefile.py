"""What `make` rebuilds: the environment after changed pins, the package after changed sources, else nothing."""

import os
import shutil
from pathlib import Path

import pytest

from tests.packaging.conftest import Run

STAMPS = (".ros", ".package", ".demo", ".test")
# Overrides the arguments of the `make` that runs this test.
DEFAULTS = {"MAKEFLAGS": "", "MAKEOVERRIDES": "", "JOBS": "auto", "PYTEST_ARGS": "", "SOURCE": "", "VENV": ".venv"}

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def made(source_tree: Path) -> Path:
    """A checkout whose virtual environment is up to date."""
    (source_tree / ".venv").mkdir()
    for path in source_tree.rglob("*"):
        os.utime(path, (1_000, 1_000))
    for stamp in STAMPS:
        (source_tree / ".venv" / stamp).touch()
        os.utime(source_tree / ".venv" / stamp, (2_000, 2_000))
    return source_tree


def would_make(tree: Path, target: str, run: Run) -> list[str]:
    """The commands that `make` would run, without running them."""
    return run("make", "--no-print-directory", "-C", tree, "--just-print", target, **DEFAULTS).stdout.splitlines()


def test_a_second_call_starts_at_once(made: Path, run: Run) -> None:
    assert would_make(made, "test", run) == [".venv/bin/python -m pytest --numprocesses auto "]


@pytest.mark.parametrize("changed", ["msg/Caption.msg", "smart_caption_ros/__init__.py", "setup.py"])
def test_a_changed_source_builds_the_package_again_and_nothing_else(changed: str, made: Path, run: Run) -> None:
    os.utime(made / changed, (3_000, 3_000))
    commands = would_make(made, "test", run)
    assert [line.split()[-2:] for line in commands if "-m pip wheel" in line] == [["build/wheel", "."]]
    installs = [line.split()[-2:] for line in commands if "--constraint" in line]
    assert installs == [["--no-deps", "build/wheel/*.whl"]]


@pytest.mark.parametrize("changed", ["requirements/ros-jazzy.txt", "requirements/constraints.txt"])
def test_a_changed_pin_makes_a_new_environment(changed: str, made: Path, run: Run) -> None:
    os.utime(made / changed, (3_000, 3_000))
    commands = "\n".join(would_make(made, "test", run))
    assert "-m venv --clear .venv" in commands
    assert "smart_caption_ros[demo,fleet,test,training]" in commands


def test_the_demo_installs_no_torch(made: Path, run: Run) -> None:
    shutil.rmtree(made / ".venv")
    commands = "\n".join(would_make(made, "demo", run))
    assert "smart_caption_ros[demo]'" in commands
    assert "training" not in commands
