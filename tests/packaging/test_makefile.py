"""What `make` rebuilds: the environment after changed pins, the package after changed sources, else nothing."""

import os
import shutil

import pytest

from tests.packaging.conftest import ROOT

STAMPS = (".ros", ".package", ".demo", ".test")
FOLDERS = ("smart_caption_ros", "launch", "config", "msg", "srv", "cmake", "scripts", "requirements")
# Overrides the arguments of the `make` that runs this test.
DEFAULTS = {"MAKEFLAGS": "", "MAKEOVERRIDES": "", "JOBS": "auto", "PYTEST_ARGS": "", "SOURCE": "", "VENV": ".venv"}

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def made(tmp_path):
    """A checkout whose virtual environment is up to date: its Makefile, and empty files in place of the others."""
    files = [*ROOT.glob("*.*"), ROOT / "Makefile", *(path for name in FOLDERS for path in (ROOT / name).rglob("*.*"))]
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            (tmp_path / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file.relative_to(ROOT)).touch()
    shutil.copyfile(ROOT / "Makefile", tmp_path / "Makefile")
    (tmp_path / ".venv").mkdir()
    for path in tmp_path.rglob("*"):
        os.utime(path, (1_000, 1_000))
    for stamp in STAMPS:
        (tmp_path / ".venv" / stamp).touch()
        os.utime(tmp_path / ".venv" / stamp, (2_000, 2_000))
    return tmp_path


def would_make(tree, target, run):
    return run("make", "--no-print-directory", "-C", tree, "--just-print", target, **DEFAULTS).stdout.splitlines()


def test_a_second_call_starts_at_once(made, run):
    assert would_make(made, "test", run) == [".venv/bin/python -m pytest --numprocesses auto "]


@pytest.mark.parametrize("changed", ["msg/Caption.msg", "smart_caption_ros/__init__.py", "setup.py"])
def test_a_changed_source_builds_the_package_again_and_nothing_else(changed, made, run):
    os.utime(made / changed, (3_000, 3_000))
    commands = would_make(made, "test", run)
    assert [line.split()[-2:] for line in commands if "-m pip wheel" in line] == [["build/wheel", "."]]
    installs = [line.split()[-2:] for line in commands if "--constraint" in line]
    assert installs == [["--no-deps", "build/wheel/*.whl"]]


@pytest.mark.parametrize("changed", ["requirements/ros-jazzy.txt", "requirements/constraints.txt"])
def test_a_changed_pin_makes_a_new_environment(changed, made, run):
    os.utime(made / changed, (3_000, 3_000))
    commands = "\n".join(would_make(made, "test", run))
    assert "-m venv --clear .venv" in commands
    assert "smart_caption_ros[demo,fleet,test,training]" in commands


def test_the_demo_installs_no_torch(made, run):
    shutil.rmtree(made / ".venv")
    commands = "\n".join(would_make(made, "demo", run))
    assert "smart_caption_ros[demo]'" in commands
    assert "training" not in commands
