"""What pip builds and where it goes: the robot side alone, laid out as a ROS prefix."""

import stat
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def names(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="session")
def prefix(names):
    """The files that go into the prefix, relative to it."""
    parts = (PurePosixPath(name).parts for name in names)
    return {"/".join(part[2:]) for part in parts if part[0].endswith(".data") and part[1] == "data"}


def test_wheel_holds_every_module_of_the_robot_side_and_nothing_else(names):
    ours = {str(path.relative_to(ROOT)) for path in ROOT.glob("smart_caption_ros/**/*.py")}
    generated = ("smart_caption_ros/msg/", "smart_caption_ros/srv/")
    in_prefix = {name for name in names if ".data/" in name}
    modules = {name for name in names - in_prefix if name.endswith(".py") and not name.startswith(generated)}
    assert modules == ours


@pytest.mark.parametrize("pattern", PROJECT["tool"]["setuptools"]["package-data"]["smart_caption_ros"])
def test_wheel_holds_the_data_files(names, pattern):
    files = {str(path.relative_to(ROOT)) for path in ROOT.glob(f"smart_caption_ros/{pattern}") if path.is_file()}
    assert files
    assert {file for file in files if "__pycache__" not in file} <= names


@pytest.mark.needs_ros
def test_wheel_holds_the_messages_and_their_libraries(names, prefix):
    for path in ROOT.glob("[ms][sr][gv]/*.[ms][sr][gv]"):
        assert f"share/smart_caption_ros/{path.relative_to(ROOT)}" in prefix
    assert "smart_caption_ros/msg/_caption.py" in names
    assert "smart_caption_ros/srv/_describe_image.py" in names
    assert any(name.startswith("smart_caption_ros/") and name.endswith(".so") for name in names)
    assert "lib/libsmart_caption_ros__rosidl_generator_c.so" in prefix


@pytest.mark.needs_ros
def test_wheel_holds_what_ros_tools_look_for(prefix):
    share = {
        str(path.relative_to(ROOT))
        for folder in ("launch", "config")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert any(name.startswith("launch/") for name in share)
    assert any(name.startswith("config/") for name in share)
    assert {f"share/smart_caption_ros/{name}" for name in share | {"package.xml"}} <= prefix
    assert "share/ament_index/resource_index/packages/smart_caption_ros" in prefix
    assert "share/ament_index/resource_index/rosidl_interfaces/smart_caption_ros" in prefix
    assert {f"lib/smart_caption_ros/{node}_node" for node in ("caption", "camera", "caption_log")} <= prefix


@pytest.mark.needs_ros
def test_cmake_files_name_no_folder_of_the_machine_that_built_them(wheel, names):
    archive = zipfile.ZipFile(wheel)
    for name in sorted(name for name in names if name.endswith(".cmake")):
        assert sys.prefix not in archive.read(name).decode(), name


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory, run):
    """A virtual environment with the wheel alone."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    return folder


@pytest.mark.needs_ros
@pytest.mark.parametrize(
    ("node", "command"), [("caption_node", "smart-caption-node"), ("camera_node", "smart-caption-camera")]
)
def test_installed_node_runs_the_command_of_its_own_prefix(node, command, installed, run):
    started = installed / "lib" / "smart_caption_ros" / node
    assert started.stat().st_mode & stat.S_IXUSR
    real = installed / "bin" / command
    assert real.stat().st_mode & stat.S_IXUSR
    real.write_text('#!/bin/sh\necho "$0" "$@"\n')
    where, *arguments = run(started, "--ros-args", "-p", "name:=a b").stdout.split()
    assert Path(where).resolve() == real
    assert arguments == ["--ros-args", "-p", "name:=a", "b"]
