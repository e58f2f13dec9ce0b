"""The ROS messages and services: documented, readable by others, and the same as the built ones."""

import importlib
import re
from pathlib import Path

import pytest
from rosbags.typesys import get_types_from_msg

ROOT = Path(__file__).resolve().parents[2]
INTERFACES = sorted([*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv")])
MESSAGES = sorted(ROOT.glob("msg/*.msg"))


def lines_of(path: Path) -> list[str]:
    """The lines that declare a field or a constant."""
    return [line for line in path.read_text().splitlines() if line.strip() and not line.startswith(("#", "---"))]


def fields_of(path: Path) -> list[list[str]]:
    """The names of the fields, in order; one list for a message, two for a service."""
    parts = path.read_text().split("---\n")
    pattern = re.compile(r"^[\w/\[\]]+ +(\w+)(?!\w|=)", re.MULTILINE)
    return [pattern.findall(part) for part in parts]


def test_there_are_interfaces() -> None:
    assert {"Caption", "CaptionWord", "DescribeImage"} <= {path.stem for path in INTERFACES}


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.name)
def test_interface_and_each_of_its_fields_have_a_comment(path: Path) -> None:
    assert path.read_text().startswith("# "), "the file says what it is for in its first line"
    bare = [line for line in lines_of(path) if not re.search(r"\S\s+# \w", line.replace("# (", "# "))]
    assert not bare


@pytest.mark.parametrize("path", [p for p in INTERFACES if "float32" in p.read_text()], ids=lambda path: path.name)
def test_comment_of_a_number_names_its_unit_or_its_range(path: Path) -> None:
    unit = re.compile(r"\[(pixel|ms|count)|\b0 to 1\b|at most 0|-1 to 1|natural log")
    bare = [line for line in lines_of(path) if line.startswith("float32") and not unit.search(line)]
    assert not bare


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.name)
def test_message_can_be_read_without_ros(path: Path) -> None:
    name = f"smart_caption_ros/msg/{path.stem}"
    constants, fields = get_types_from_msg(path.read_text(), name)[name]
    assert [[field for field, _ in fields]] == fields_of(path)
    assert bool(constants) == (path.stem in ("Caption", "Coverage", "DetectedObject", "GroundedNoun"))


@pytest.mark.needs_ros
@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.name)
def test_built_interface_is_that_of_the_checkout(path: Path) -> None:
    """Fails too where the installed package is older than the checkout: `make test` builds it anew."""
    built = getattr(importlib.import_module(f"smart_caption_ros.{path.suffix[1:]}"), path.stem)
    parts = [built] if path.suffix == ".msg" else [built.Request, built.Response]
    assert [list(part.get_fields_and_field_types()) for part in parts] == fields_of(path)


@pytest.mark.needs_ros
def test_statuses_differ_and_ok_is_the_default() -> None:
    from smart_caption_ros.msg import Caption

    declared = re.findall(r"^uint8 (STATUS_\w+)=", (ROOT / "msg" / "Caption.msg").read_text(), re.MULTILINE)
    values = [getattr(Caption, name) for name in declared]
    assert declared[0] == "STATUS_OK"
    assert Caption().status == Caption.STATUS_OK
    assert sorted(values) == list(range(len(declared)))
