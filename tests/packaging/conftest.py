"""A copy of the checkout to build from, and the wheel that pip makes of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def run():
    """Runs a command with no checkout on its Python path; a failure shows what the command printed."""

    def run_command(*command, check=True, **environment):
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, env=inherited | environment, cwd="/"
        )
        if check and done.returncode != 0:
            pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
        return done

    return run_command


@pytest.fixture
def source_tree(tmp_path):
    """A fresh copy of the checkout's files: a build leaves nothing behind and finds nothing left."""
    return copy_checkout(tmp_path / "source")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory, run):
    """The wheel that `make` has built from the checkout's sources as they are, else one built from a fresh copy.

    It holds the messages if the interpreter has ROS.
    """
    if (made := wheel_of_make()) is not None:
        return made
    folder = tmp_path_factory.mktemp("wheel")
    tree = copy_checkout(folder / "source")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder / "built", tree)
    (built,) = (folder / "built").glob("*.whl")
    return built


def wheel_of_make():
    """The wheel in `build/wheel`; None if it is not of this interpreter, or older than a file that goes into it."""
    tag = f"-cp{sys.version_info.major}{sys.version_info.minor}-"
    wheels = [path for path in (ROOT / "build" / "wheel").glob("*.whl") if tag in path.name]
    if len(wheels) != 1 or Path(sys.prefix).parent != ROOT:
        return None
    folders = (ROOT / name for name in ("smart_caption_ros", "launch", "config", "msg", "srv", "cmake", "scripts"))
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    files += [ROOT / name for name in ("CMakeLists.txt", "package.xml", "pyproject.toml", "setup.py", "README.md")]
    newest = max(path.stat().st_mtime for path in files)
    return wheels[0] if wheels[0].stat().st_mtime > newest else None


def copy_checkout(to):
    made = (".*", "__pycache__", "*.egg-info", "build", "demo_output", "dist", "install", "log", "runs")
    return Path(shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(*made)))
