"""Build the ROS messages with the Python package; pyproject.toml has all other settings of the package.

CMake builds the messages as under colcon, into a staging folder. The wheel has the layout of a ROS prefix, `share/`,
`lib/` and `include/` beside `bin/`, so that ROS tools find the package in the virtual environment.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

NAME = "smart_caption_ros"
SOURCE = Path(__file__).resolve().parent


def ros_prefixes() -> list[str]:
    """Find folders with ROS: the sourced environment, then this interpreter's prefix (pip wheels)."""
    sourced = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [prefix for prefix in [*sourced, sys.prefix] if Path(prefix, "share", "ament_index").is_dir()]


PREFIXES = ros_prefixes()
WITH_ROS = any(Path(prefix, "share", "rosidl_default_generators").is_dir() for prefix in PREFIXES)


class BuildMessages(build_ext):
    """Runs CMake and adds the built messages to the package."""

    def run(self) -> None:
        if self.editable_mode:
            self.warn("an editable install cannot carry the ROS messages: use `pip install .` for them")
        elif WITH_ROS:
            self._add_to_package(self._stage())

    def _stage(self) -> Path:
        if not shutil.which("cmake"):
            raise SystemExit("building the ROS messages needs cmake and a C++ compiler: apt install cmake g++")
        build, stage = (Path(self.build_temp).resolve() / name for name in ("cmake", "stage"))
        shutil.rmtree(stage, ignore_errors=True)
        # Keep compiled objects, but not the paths of another environment's libraries.
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        # pip's isolated build hides the Python packages of ROS from CMake; PYTHONPATH adds them.
        packages = [sysconfig.get_path("purelib", vars={"base": prefix}) for prefix in PREFIXES]
        environment = os.environ | {
            "AMENT_PREFIX_PATH": os.pathsep.join(PREFIXES),
            "CMAKE_PREFIX_PATH": os.pathsep.join(PREFIXES),
            "PYTHONPATH": os.pathsep.join(packages),
            "DESTDIR": str(stage),
        }
        configure = [
            f"-DCMAKE_INSTALL_PREFIX={sys.prefix}",
            f"-DCMAKE_PROJECT_INCLUDE={SOURCE / 'cmake' / 'pip_wheels.cmake'}",
            f"-DPython3_EXECUTABLE={sys.executable}",
            "-DCMAKE_BUILD_TYPE=Release",
            "-DBUILD_TESTING=OFF",
        ]
        for command in (
            ["cmake", "-S", SOURCE, "-B", build, *configure],
            ["cmake", "--build", build, "--parallel", str(os.cpu_count())],
            ["cmake", "--install", build],
        ):
            subprocess.run(command, check=True, env=environment)
        return stage / Path(sys.prefix).relative_to("/")

    def _add_to_package(self, stage: Path) -> None:
        """Copy the Python code of the messages into the package; all other files become data files."""
        (staged,) = stage.glob(f"**/*-packages/{NAME}")
        package = Path(self.build_lib, NAME)
        for kind in ("msg", "srv"):
            shutil.copytree(staged / kind, package / kind, dirs_exist_ok=True)
        for library in staged.glob("*.so"):
            shutil.copy2(library, package)
        files: dict[str, list[str]] = {}
        for path in sorted(stage.rglob("*")):
            folder = path.parent.relative_to(stage)
            # pip creates the commands (bin); the Python package is already in the wheel.
            if path.is_file() and folder.parts[0] != "bin" and staged.parent not in path.parents:
                files.setdefault(str(folder), []).append(os.path.relpath(path))
        self.distribution.data_files = list(files.items())


class BuildPackage(build_py):
    """Adds the definitions of the messages, which are read to write bags without ROS."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, NAME, "interfaces", "msg")
            folder.mkdir(parents=True, exist_ok=True)
            for definition in sorted((SOURCE / "msg").glob("*.msg")):
                shutil.copy2(definition, folder)


class RosDistribution(Distribution):
    """Marks a wheel with messages as platform specific, although setuptools compiles nothing."""

    def has_ext_modules(self) -> bool:
        return WITH_ROS


if not WITH_ROS:
    print("warning: no ROS 2 found: messages and nodes are left out, everything else works", file=sys.stderr)
setup(cmdclass={"build_ext": BuildMessages, "build_py": BuildPackage}, distclass=RosDistribution)
