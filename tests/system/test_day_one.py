"""The programs in docs/day_one.md work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from smart_caption_ros.msg import BoundingBox, Caption, DetectedObject, GroundedNoun

from tests.conftest import ROOT


def program(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / "day_one.md").read_text(), re.DOTALL)
    return found


def test_the_python_listener_prints_trusted_captions_with_their_objects_and_why_others_are_not(robot, tmp_path):
    file, heard = tmp_path / "listener.py", tmp_path / "heard.txt"
    file.write_text(program("python"))
    with heard.open("w") as output, subprocess.Popen([sys.executable, file], stdout=output, stderr=output) as listener:
        try:
            publisher = robot.publisher(Caption, "/robot/caption")
            publisher.publish(
                Caption(
                    text="a wooden desk with a bottle",
                    calibrated_confidence=0.65,
                    objects=[DetectedObject(box=BoundingBox(x1=150.0, y1=123.0, x2=169.0, y2=160.0))],
                    nouns=[GroundedNoun(noun="desk", object_index=-1), GroundedNoun(noun="bottle", object_index=0)],
                )
            )
            publisher.publish(Caption(status=Caption.STATUS_STALE, status_message="the image is 2.0 s old"))
            robot.wait_for(lambda: "2.0 s old" in heard.read_text(), "second caption")
        finally:
            listener.terminate()
    assert heard.read_text().splitlines() == [
        "a wooden desk with a bottle (of 100 such captions 65 are true)",
        "  bottle at x 150 to 169, y 123 to 160",
        "not acted on: the image is 2.0 s old",
    ]
    assert listener.returncode == 0


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_cpp_listener_compiles_with_the_generated_headers(tmp_path):
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    includes = [folder for prefix in prefixes for folder in Path(prefix, "include").glob("*")]
    source = program("cpp")
    if not any((folder / "rclcpp" / "rclcpp.hpp").is_file() for folder in includes):  # the wheels of ROS lack rclcpp
        source = source[: source.index("int main")].replace("#include <rclcpp/rclcpp.hpp>\n", "")
    file = tmp_path / "listener.cpp"
    file.write_text(source)
    command = ["c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Werror", *(f"-I{folder}" for folder in includes), file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
