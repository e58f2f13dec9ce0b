"""Who may import whom: packages and rooms in one order, without circles; torch and ROS only where they belong."""

import re
import subprocess
import sys

import pytest

from tests.packaging.imports import ROOT, imports_of, imports_of_file
from tests.packaging.test_metadata import ros_dependencies

ROS = {name for name in ros_dependencies() if not name.startswith("python3-")}
ROS |= {"smart_caption_ros.msg", "smart_caption_ros.srv", "yolo_msgs"}
TORCH = {"torch", "torchvision"}
MAY_IMPORT = {
    "smart_caption_ros": set(),
    "training": {"smart_caption_ros"},
    "export": {"smart_caption_ros", "training"},
    "benchmarks": {"smart_caption_ros", "training", "export"},
    "recipes": {"smart_caption_ros", "training", "export", "benchmarks"},
}
"""The packages of the checkout, and those that each may import."""
ROBOT_ROOMS = (
    "cli",
    "nodes",
    "measuring",
    "fleet",
    "evaluation",
    "serving",
    "caption_log",
    "bags",
    "live",
    "sources",
    "caption_messages",
    "record",
    "viewing",
    "grounding",
    "captioning",
    "detection",
    "engines",
    "imaging",
)
"""From the top floor down: a room imports the rooms below it and no room above it."""
ROBOT_BASE = ("errors", "files", "json_text", "mailbox", "signals", "text", "time_window")
"""Modules below all rooms, in no order."""
TRAINING_ROOMS = ("engine", "objectives", "decoding", "evaluation", "data", "models", "vision", "configs")
"""From the top floor down. The commands stand above them, the modules of ``TRAINING_BASE`` below."""
TRAINING_BASE = ("checkpoint", "command_line", "errors", "paths")
ROBOT_TESTS = sorted(path.name for path in (ROOT / "tests").iterdir() if path.name in (*ROBOT_ROOMS, "system"))
WORKSTATION_FIXTURES = ("tiny_checkpoint", "exported_bundle")


def modules():
    """Dotted name of every source module -> its file."""
    found = {}
    for folder in MAY_IMPORT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).with_suffix("")
            parts = name.parts[:-1] if name.name == "__init__" else name.parts
            found[".".join(parts)] = str(path.relative_to(ROOT))
    return found


def arrows():
    """Module and imported module, of this repository's own, wherever in a file the import stands, if it is run."""
    known = modules()
    names = {file: name for name, file in known.items()}
    for folder in MAY_IMPORT:
        for file, imported in imports_of(folder, run=True):
            if imported in known and names[file] != imported:
                yield names[file], imported


def users_of(folder, modules):
    """Imports under the folder of these modules or of anything inside them."""
    return {
        (path, name)
        for path, name in imports_of(folder)
        if any(name == module or name.startswith(f"{module}.") for module in modules)
    }


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_the_packages_that_it_may(package):
    assert not users_of(package, MAY_IMPORT.keys() - MAY_IMPORT[package] - {package})


def test_the_robot_side_never_names_torch():
    assert not users_of("smart_caption_ros", TORCH)


def test_ros_is_imported_in_the_nodes_alone():
    users = {path for folder in MAY_IMPORT.keys() - {"benchmarks"} for path, _ in users_of(folder, ROS)}
    inside = {path for path in users if path.startswith("smart_caption_ros/nodes/")}
    assert inside, "the nodes use ROS, so this test sees what it looks for"
    assert users == inside


@pytest.mark.parametrize(
    ("package", "rooms", "base"),
    [("smart_caption_ros", ROBOT_ROOMS, ROBOT_BASE), ("training", TRAINING_ROOMS, TRAINING_BASE)],
)
def test_a_room_imports_no_room_above_it(package, rooms, base):
    assert all((ROOT / package / room).exists() or (ROOT / package / f"{room}.py").exists() for room in (*rooms, *base))

    def floor(room):
        """Higher numbers stand lower; a module in no list is a command, which stands above all rooms."""
        return len(rooms) if room in base else rooms.index(room) if room in rooms else -1

    upwards = []
    for module, imported in arrows():
        (here, room), (there, other) = ((*name.split("."), "")[:2] for name in (module, imported))
        if here == there == package and room and other and room != other and floor(other) < floor(room):
            upwards.append(f"{module} -> {imported}")
    assert not upwards


def test_no_module_takes_part_in_a_circle_of_imports():
    graph = {name: set() for name in modules()}
    for module, imported in arrows():
        graph[module].add(imported)
    # Peel off modules that import nothing that is left; what cannot be peeled off is on or above a circle.
    left = dict(graph)
    while done := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets for name, targets in left.items() if name not in done}
    assert not {name: sorted(targets & left.keys()) for name, targets in left.items()}


def test_importing_what_needs_no_ros_loads_neither_torch_nor_rclpy():
    """In one process, from the bottom floor up."""
    rooms = [
        room for room in (*ROBOT_BASE, *reversed(ROBOT_ROOMS)) if room not in ("nodes", "caption_messages", "fleet")
    ]
    code = (
        "import importlib, sys\n"
        f"for room in {rooms}:\n"
        "    importlib.import_module(f'smart_caption_ros.{room}')\n"
        "    assert not {'rclpy', 'torch'} & set(sys.modules), room\n"
        "from smart_caption_ros.grounding.nouns import NounFinder\n"
        "assert NounFinder.load().nouns('a dog')[0].lemma == 'dog'\n"
        "assert not {'torch', 'spacy.cli'} & set(sys.modules), 'loading a pipeline of spaCy'\n"
        "importlib.util.find_spec('torch')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ROBOT_TESTS)
def test_the_robot_sides_tests_need_neither_torch_nor_the_workstation(folder):
    workstation = TORCH | MAY_IMPORT.keys() - {"smart_caption_ros"}
    left = {file: [file] for file, _ in imports_of(f"tests/{folder}")}
    seen = set()
    while left:
        file, chain = left.popitem()
        seen.add(file)
        for module in imports_of_file(ROOT / file):
            assert module.split(".")[0] not in workstation, " -> ".join([*chain, module])
            helper = f"{module.replace('.', '/')}.py"
            # The root's conftest imports torch for the fixtures below, when they are requested.
            if helper not in seen and helper != "tests/conftest.py" and (ROOT / helper).is_file():
                left[helper] = [*chain, helper]
    pattern = re.compile(rf"\b({'|'.join(WORKSTATION_FIXTURES)})\b")
    assert not [file for file in seen if pattern.search((ROOT / file).read_text())]
