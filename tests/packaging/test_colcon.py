"""The other way to build: colcon, as in a ROS 2 workspace."""

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

COLCON = shutil.which("colcon", path=os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", "")]))


@pytest.mark.long
@pytest.mark.needs_ros
@pytest.mark.skipif(COLCON is None, reason="needs colcon on the PATH (pip install colcon-common-extensions)")
def test_colcon_builds_and_tests_package_messages_and_commands(tmp_path, source_tree, run):
    sourced = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    prefixes = os.pathsep.join([*sourced, sys.prefix])
    environment = {
        "AMENT_PREFIX_PATH": prefixes,
        "CMAKE_PREFIX_PATH": prefixes,
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    # The wheel's build compiles the messages for C++, which takes most of the time; Python needs the code in C alone.
    build = source_tree / "CMakeLists.txt"
    before, call, after = build.read_text().partition("rosidl_generate_interfaces(")
    without_cpp = 'list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:")\n'
    build.write_text(before + without_cpp + call + after)
    colcon = (str(COLCON), "--log-base", tmp_path / "log")
    places = ("--build-base", tmp_path / "build", "--install-base", tmp_path / "install")
    run(
        *(*colcon, "build", "--base-paths", source_tree, *places),
        *("--cmake-args", f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=ON"),
        f"-DCMAKE_PROJECT_INCLUDE={source_tree / 'cmake' / 'pip_wheels.cmake'}",
        **environment,
    )
    run(*colcon, "test", "--base-paths", source_tree, *places, "--return-code-on-test-failure", **environment)
    (results,) = (tmp_path / "build").rglob("installed.xunit.xml")
    assert ' tests="5"' in results.read_text()
    assert "<failure" not in results.read_text()
    installed = tmp_path / "install" / "smart_caption_ros"
    check = (
        "import json, smart_caption_ros, smart_caption_ros.srv;"
        "from smart_caption_ros.sources import open_source;"
        "from smart_caption_ros.msg import Caption;"
        'assert open_source("sample:household").known_length;'
        "print(json.dumps([smart_caption_ros.__file__, smart_caption_ros.__version__, Caption.STATUS_OK]))"
    )
    set_up = f". {tmp_path / 'install' / 'setup.sh'} && exec {sys.executable} -c '{check}'"
    where, version, status = json.loads(run("/bin/sh", "-c", set_up).stdout)
    assert Path(where).is_relative_to(installed)
    assert (version, status) == ("0.1.0", 0)
    for name in ("bin/smart-caption", "bin/smart-caption-node", "lib/smart_caption_ros/caption_node"):
        assert os.access(installed / name, os.X_OK), name
    assert (installed / "share" / "ament_index" / "resource_index" / "packages" / "smart_caption_ros").is_file()
