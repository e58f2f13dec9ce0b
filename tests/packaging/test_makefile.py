"""What `make` rebuilds: the environment after changed pins, the package after changed sources, else nothing."""

import os
import shutil
from pathlib import Path

import pytest

from tests.packaging.conftest import Run

STAMPS = (".ros", ".package", ".demo", ".test")
# Overrides the arguments of the `make` that runs this test.
DEFAULTS = {"MAKEFLAGS": "", "MAKEOVERRIDES": "", "JOBS": "auto", "PYTEST_ARGS": "", "SOURCE": "", "VENV": ".venv"}


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


def would_make(tree: Path, target: str, run: Run, *arguments: str) -> list[str]:
    """The commands that `make` would run, without running them."""
    make = ("make", "--no-print-directory", "-C", tree, "--just-print", target, *arguments)
    return run(*make, **DEFAULTS).stdout.splitlines()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
class TestMake:
    def test_second_call_starts_at_once(self, made: Path, run: Run) -> None:
        assert would_make(made, "test", run) == [".venv/bin/python -m pytest --numprocesses auto "]
        rooms, photographs = would_make(made, "demo", run)
        assert rooms == ".venv/bin/smart-caption demo --output demo_output"
        assert photographs.startswith(".venv/bin/smart-caption demo --source sample:photographs")

    @pytest.mark.parametrize("changed", ["msg/Caption.msg", "smart_caption_ros/__init__.py", "setup.py"])
    def test_changed_source_installs_the_package_again_and_nothing_else(
        self, changed: str, made: Path, run: Run
    ) -> None:
        os.utime(made / changed, (3_000, 3_000))
        commands = would_make(made, "test", run)
        (build,) = (line for line in commands if "-m pip wheel" in line)
        assert build.split()[-2:] == ["build/wheel", "."]
        installs = [line for line in commands if "--constraint" in line]
        assert [line.split()[-2:] for line in installs] == [["--no-deps", "build/wheel/*.whl"]]

    @pytest.mark.parametrize("changed", ["requirements/ros-jazzy.txt", "requirements/constraints.txt"])
    def test_changed_pin_makes_a_new_environment(self, changed: str, made: Path, run: Run) -> None:
        os.utime(made / changed, (3_000, 3_000))
        commands = "\n".join(would_make(made, "test", run))
        assert "-m venv --clear .venv" in commands
        assert "smart_caption_ros[demo,fleet,test,training]" in commands

    def test_changed_dependency_is_installed(self, made: Path, run: Run) -> None:
        os.utime(made / "pyproject.toml", (3_000, 3_000))
        assert any("smart_caption_ros[demo]" in line for line in would_make(made, "demo", run))

    def test_demo_needs_no_torch(self, made: Path, run: Run) -> None:
        shutil.rmtree(made / ".venv")
        commands = "\n".join(would_make(made, "demo", run))
        assert "smart_caption_ros[demo]'" in commands
        assert "training" not in commands

    def test_source_with_a_blank_in_its_name_reaches_the_demo_whole(self, made: Path, run: Run) -> None:
        (command,) = would_make(made, "demo", run, "SOURCE=my photographs/kitchen")
        assert '--source "my photographs/kitchen"' in command

    def test_plain_make_explains_itself(self, made: Path, run: Run) -> None:
        text = run("make", "-C", made, **DEFAULTS).stdout
        for target in ("demo", "test", "lint", "clean"):
            assert f"make {target}" in text
