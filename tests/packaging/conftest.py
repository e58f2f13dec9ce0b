"""A copy of the checkout to build from, and the wheel that pip makes of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a command with no checkout on its Python path; a failure shows what the command printed."""

    def run_command(*command: str | Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, env=inherited | environment, cwd="/"
        )
        if check and done.returncode != 0:
            pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
        return done

    return run_command


@pytest.fixture
def source_tree(tmp_path: Path) -> Path:
    """A fresh copy of the checkout's files: a build leaves nothing behind and finds nothing left."""
    return copy_checkout(tmp_path / "source")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """The wheel, built once: with messages where the interpreter has ROS."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = copy_checkout(folder / "source")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder / "built", tree)
    (built,) = (folder / "built").glob("*.whl")
    return built


def copy_checkout(to: Path) -> Path:
    made = (".*", "__pycache__", "*.egg-info", "build", "demo_output", "dist", "install", "log", "runs")
    return Path(shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(*made)))
