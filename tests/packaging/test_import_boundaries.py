"""Who may import whom: no torch on the robot side, ROS in the nodes alone, and no way back up."""

import subprocess
import sys

import pytest

from tests.packaging.imports import imports_of

ROS = {
    "ament_index_python",
    "builtin_interfaces",
    "diagnostic_msgs",
    "lifecycle_msgs",
    "rcl_interfaces",
    "rclpy",
    "sensor_msgs",
    "smart_caption_ros.msg",
    "smart_caption_ros.srv",
    "std_msgs",
    "std_srvs",
    "vision_msgs",
}


def users_of(folder: str, modules: set[str]) -> set[tuple[str, str]]:
    """Imports under the folder of these modules or of anything inside them."""
    return {
        (path, name)
        for path, name in imports_of(folder)
        if any(name == module or name.startswith(f"{module}.") for module in modules)
    }


def test_robot_side_never_names_torch_nor_the_workstation() -> None:
    assert not users_of("smart_caption_ros", {"torch", "torchvision", "training", "export"})


def test_ros_is_imported_in_the_nodes_alone() -> None:
    users = users_of("smart_caption_ros", ROS) | users_of("training", ROS) | users_of("export", ROS)
    inside = {path for path, _ in users if path.startswith("smart_caption_ros/nodes/")}
    assert inside, "the nodes use ROS, so this test sees what it looks for"
    assert {path for path, _ in users} == inside


@pytest.mark.parametrize(
    ("room", "above"),
    [
        ("captioning", {"coverage", "grounding", "datasets", "viewing", "nodes", "cli", "doctor"}),
        ("coverage", {"captioning", "grounding", "datasets", "viewing", "nodes", "cli", "doctor"}),
        ("datasets", {"captioning", "viewing", "nodes", "cli", "doctor"}),
        ("viewing", {"grounding", "datasets", "nodes", "cli", "doctor"}),
        ("nodes", {"cli", "doctor"}),
    ],
)
def test_room_imports_no_room_above_it(room: str, above: set[str]) -> None:
    rooms = {f"smart_caption_ros.{name}" for name in above}
    assert list(imports_of(f"smart_caption_ros/{room}"))
    assert not users_of(f"smart_caption_ros/{room}", rooms)


@pytest.mark.parametrize("module", ["captioning", "coverage", "datasets", "viewing", "cli"])
def test_importing_what_needs_no_ros_loads_neither_torch_nor_rclpy(module: str) -> None:
    loaded = f"import smart_caption_ros.{module}, sys; print(sorted({{'rclpy', 'torch'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
