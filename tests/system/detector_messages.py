"""Stand-ins for vision_msgs and yolo_msgs, which are not on PyPI, with the fields that the node reads.

They are built as in a ROS workspace, once for each state of the definitions, into `build/stand_ins`.
"""

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# From the definitions of vision_msgs 4.1 (Jazzy) and of yolo_msgs of yolo_ros, without what the node does not read.
PACKAGES = {
    "vision_msgs": {
        "Point2D": "float64 x\nfloat64 y",
        "Pose2D": "vision_msgs/Point2D position\nfloat64 theta",
        "BoundingBox2D": "vision_msgs/Pose2D center\nfloat64 size_x\nfloat64 size_y",
        "ObjectHypothesis": "string class_id\nfloat64 score",
        "ObjectHypothesisWithPose": "vision_msgs/ObjectHypothesis hypothesis",
        "Detection2D": "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox2D bbox\nstring id",
        "Detection2DArray": "std_msgs/Header header\nvision_msgs/Detection2D[] detections",
        "VisionClass": "uint16 class_id\nstring class_name",
        "LabelInfo": "std_msgs/Header header\nvision_msgs/VisionClass[] class_map\nfloat32 threshold",
    },
    "yolo_msgs": {
        "Point2D": "float64 x\nfloat64 y",
        "Vector2": "float64 x\nfloat64 y",
        "Pose2D": "yolo_msgs/Point2D position\nfloat64 theta",
        "BoundingBox2D": "yolo_msgs/Pose2D center\nyolo_msgs/Vector2 size",
        "Detection": "int32 class_id\nstring class_name\nfloat64 score\nstring id\nyolo_msgs/BoundingBox2D bbox",
        "DetectionArray": "std_msgs/Header header\nyolo_msgs/Detection[] detections",
    },
}
_RPATH = f"$ORIGIN;$ORIGIN/../../..;{sys.prefix}/lib"
"""Paths to the libraries of the package and its dependencies, relative to its libraries and Python modules."""
_CMAKE = """cmake_minimum_required(VERSION 3.21)
project({name})
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
find_package(std_msgs REQUIRED)
# Python needs the code in C alone, and that in C++ takes most of the time.
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:")
file(GLOB interfaces RELATIVE ${{CMAKE_CURRENT_SOURCE_DIR}} msg/*.msg)
rosidl_generate_interfaces(${{PROJECT_NAME}} ${{interfaces}} DEPENDENCIES std_msgs)
ament_package()
"""
_PACKAGE = """<package format="3"><name>{name}</name><version>0.0.0</version><description>Stand-in.</description>
<maintainer email="none@example.org">none</maintainer><license>Apache-2.0</license>
<buildtool_depend>ament_cmake</buildtool_depend><depend>std_msgs</depend>
<member_of_group>rosidl_interface_packages</member_of_group></package>
"""


def install_prefix() -> Path:
    """Return the prefix in which the packages are installed; build them if necessary."""
    state = hashlib.sha256(repr((PACKAGES, _CMAKE, _RPATH, sys.version, sys.prefix)).encode()).hexdigest()[:12]
    prefix = ROOT / "build" / "stand_ins" / state
    for name, messages in PACKAGES.items():
        folder, done = prefix / "src" / name, prefix / f"{name}.built"
        if done.exists():
            continue
        (folder / "msg").mkdir(parents=True, exist_ok=True)
        (folder / "CMakeLists.txt").write_text(_CMAKE.format(name=name))
        (folder / "package.xml").write_text(_PACKAGE.format(name=name))
        for message, definition in messages.items():
            (folder / "msg" / f"{message}.msg").write_text(definition + "\n")
        sourced = [path for path in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if path]
        prefixes = os.pathsep.join([*sourced, sys.prefix])
        environment = os.environ | {
            "AMENT_PREFIX_PATH": prefixes,
            "CMAKE_PREFIX_PATH": prefixes,
            "PYTHONPATH": sysconfig.get_path("purelib"),
        }
        build = prefix / "build" / name
        configure = ["cmake", "-S", folder, "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DBUILD_TESTING=OFF"]
        configure += [f"-DCMAKE_PROJECT_INCLUDE={ROOT / 'cmake' / 'pip_wheels.cmake'}"]
        configure += [f"-DPython3_EXECUTABLE={sys.executable}", f"-DCMAKE_INSTALL_RPATH={_RPATH}"]
        parallel = ["--parallel", str(os.cpu_count())]
        for command in (configure, ["cmake", "--build", build, *parallel], ["cmake", "--install", build]):
            subprocess.run(command, check=True, env=environment, capture_output=True)
        done.touch()
    return prefix
