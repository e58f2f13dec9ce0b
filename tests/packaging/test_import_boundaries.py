"""Who may import whom: no torch on the robot side, ROS in the nodes alone, rooms in one order, no circle."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.imports import ROOT, imports_of

ROS = {
    "ament_index_python",
    "builtin_interfaces",
    "diagnostic_msgs",
    "foxglove_msgs",
    "geometry_msgs",
    "lifecycle_msgs",
    "rcl_interfaces",
    "rclpy",
    "sensor_msgs",
    "smart_caption_ros.msg",
    "smart_caption_ros.srv",
    "std_msgs",
    "std_srvs",
    "tf2_ros",
    "vision_msgs",
    "visualization_msgs",
}
SOURCES = ("smart_caption_ros", "training", "export", "recipes", "simulation", "benchmarks")
ROBOT_ROOMS = (
    "cli",
    "nodes",
    "measuring",
    "fleet",
    "evaluation",
    "caption_log",
    "serving",
    "bags",
    "caption_messages",
    "live",
    "sources",
    "viewing",
    "grounding",
    "captioning",
    "detection",
    "engines",
    "imaging",
    "files",
    "signals",
    "time_window",
    "text",
)
"""From the top floor down: a room imports the rooms below it and no room above it."""
TRAINING_ROOMS = (
    "engine",
    "objectives",
    "detection",
    "decoding",
    "evaluation",
    "data",
    "models",
    "vision",
    "configs",
)
"""From the top floor down. The commands stand above them, the modules of ``TRAINING_BASE`` below."""
TRAINING_BASE = ("checkpoint", "command_line", "errors", "paths")


def modules() -> dict[str, str]:
    """Dotted name of every source module -> its file."""
    found = {}
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).with_suffix("")
            parts = name.parts[:-1] if name.name == "__init__" else name.parts
            found[".".join(parts)] = str(path.relative_to(ROOT))
    return found


def arrows() -> Iterator[tuple[str, str]]:
    """Module and imported module, of this repository's own, wherever in a file the import stands."""
    known = modules()
    names = {file: name for name, file in known.items()}
    for folder in SOURCES:
        for file, imported in imports_of(folder):
            if imported in known and names[file] != imported:
                yield names[file], imported


def room_of(module: str) -> tuple[str, str]:
    """Top-level package and the room or module below it."""
    package, _, rest = module.partition(".")
    return package, rest.partition(".")[0]


def floor_of(room: str, rooms: tuple[str, ...], base: tuple[str, ...] = ()) -> int:
    """Higher numbers stand lower; what is in no list stands above all rooms (a command)."""
    if room in base:
        return len(rooms)
    return rooms.index(room) if room in rooms else -1


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
    ("package", "rooms", "base"),
    [("smart_caption_ros", ROBOT_ROOMS, ()), ("training", TRAINING_ROOMS, TRAINING_BASE)],
)
def test_a_room_imports_no_room_above_it(package: str, rooms: tuple[str, ...], base: tuple[str, ...]) -> None:
    assert all((ROOT / package / room).exists() or (ROOT / package / f"{room}.py").exists() for room in rooms)
    upwards = []
    for module, imported in arrows():
        (here, room), (there, other) = room_of(module), room_of(imported)
        between_rooms = here == there == package and room and other and room != other
        if between_rooms and floor_of(other, rooms, base) < floor_of(room, rooms, base):
            upwards.append(f"{module} -> {imported}")
    assert not upwards


def test_training_imports_neither_export_nor_benchmarks() -> None:
    assert not users_of("training", {"export", "benchmarks"})
    assert not users_of("export", {"benchmarks"})


def test_no_module_takes_part_in_a_circle_of_imports() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for module, imported in arrows():
        graph[module].add(imported)
    # Peel off modules that import nothing that is left; what cannot be peeled off is on or above a circle.
    left = dict(graph)
    while done := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets for name, targets in left.items() if name not in done}
    assert not {name: sorted(targets & left.keys()) for name, targets in left.items()}


@pytest.mark.parametrize(
    "module",
    [
        "caption_log",
        "captioning",
        "cli",
        "detection",
        "evaluation",
        "grounding",
        "imaging",
        "live",
        "measuring",
        "serving",
        "sources",
        "viewing",
    ],
)
def test_importing_what_needs_no_ros_loads_neither_torch_nor_rclpy(module: str) -> None:
    loaded = f"import smart_caption_ros.{module}, sys; print(sorted({{'rclpy', 'torch'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, cwd=Path(ROOT))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
