"""A machine with no ROS: pip installs all but the messages, and says so."""

import importlib.metadata
import sys
from pathlib import Path

import pytest
import setuptools

pytestmark = pytest.mark.long


@pytest.fixture
def python(tmp_path, run):
    """The interpreter of a virtual environment with nothing in it."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    return tmp_path / "venv" / "bin" / "python"


@pytest.fixture
def build_tools(tmp_path):
    """A folder with setuptools alone: this interpreter's site-packages would bring ROS along."""
    folder = tmp_path / "tools"
    folder.mkdir()
    package = Path(setuptools.__file__).parent
    information = f"setuptools-{importlib.metadata.version('setuptools')}.dist-info"
    for name in (package.name, information, "_distutils_hack"):
        (folder / name).symlink_to(package.parent / name)
    return folder


def test_install_without_ros_warns_and_leaves_out_the_messages(python, build_tools, source_tree, run):
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps")
    build = ("--verbose", "--no-build-isolation", source_tree)
    done = run(*pip, *build, PYTHONPATH=str(build_tools), AMENT_PREFIX_PATH="")
    assert "no ROS 2 found" in done.stdout + done.stderr

    look = "import smart_caption_ros as it, importlib.util as u; print(it.__file__, u.find_spec('{}.msg'))"
    where, messages = run(python, "-c", look.format("smart_caption_ros")).stdout.split()
    assert Path(where).is_relative_to(python.parents[1])
    assert messages == "None"
    assert (python.parent / "smart-caption").exists()
    found = run(python, "-c", "from smart_caption_ros.files import message_definitions as d; print(d()['Caption'])")
    assert Path(found.stdout.strip()).is_relative_to(python.parents[1]), "bags are written without ROS"
    assert not (python.parents[1] / "share" / "smart_caption_ros").exists()
