"""Each parameter stands once in a table; files, documentation and the running node say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2")

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes.camera_node_parameters import CAMERA_NODE_PARAMETERS
from smart_caption_ros.nodes.caption_node_parameters import CAPTION_NODE_PARAMETERS, RENAMED_PARAMETERS
from smart_caption_ros.nodes.parameters import Changes, Parameters, ParameterSpec, RenamedParameterError

pytestmark = pytest.mark.needs_ros

ROOT = Path(__file__).resolve().parents[2]
TABLES = {"caption": CAPTION_NODE_PARAMETERS, "camera": CAMERA_NODE_PARAMETERS}
EVERY_PARAMETER = [pytest.param(spec, id=f"{name}-{spec.name}") for name, table in TABLES.items() for spec in table]
SPEED = ParameterSpec("speed_hz", 2.0, "How fast.", Changes.ANY_TIME, minimum=0.5, maximum=10.0)
COUNT = ParameterSpec("count", 3, "How many.", Changes.WHILE_UNCONFIGURED, minimum=0, maximum=5)
COLOUR = ParameterSpec("colour", "red", "Which.", Changes.ANY_TIME, choices=("red", "blue"))
NAME = ParameterSpec("name", "me", "Who.", Changes.ONLY_AT_START)


@pytest.fixture
def context() -> Iterator[Context]:
    context = Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()


def node_with(context: Context, **given: Any) -> Node:
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    return Node("test_parameters", context=context, parameter_overrides=overrides)


@pytest.mark.parametrize("spec", EVERY_PARAMETER)
def test_every_parameter_is_described_and_its_default_is_legal(spec: ParameterSpec) -> None:
    assert spec.error_in(spec.default) is None
    assert spec.description[0].isupper()
    assert spec.description.endswith(".")
    descriptor = spec.descriptor()
    assert descriptor.description == spec.description
    assert descriptor.read_only == (spec.changes is Changes.ONLY_AT_START)
    if isinstance(spec.default, int | float) and not isinstance(spec.default, bool):
        assert descriptor.integer_range or descriptor.floating_point_range, "a number needs a range"


@pytest.mark.parametrize("name", TABLES)
def test_the_parameter_file_holds_exactly_the_defaults(name: str) -> None:
    text = (ROOT / "config" / f"{name}.yaml").read_text(encoding="utf-8")
    (content,) = yaml.safe_load(text).values()
    expected = {spec.name: spec.default for spec in TABLES[name]}
    assert content == {"ros__parameters": expected}
    for parameter, value in content["ros__parameters"].items():
        assert type(value) is type(expected[parameter]), f"rclpy takes no other type for {parameter}"


@pytest.mark.parametrize("name", TABLES)
def test_the_documentation_lists_every_parameter_with_type_default_range_and_meaning(name: str) -> None:
    page = (ROOT / "docs" / "running_on_a_robot.md").read_text(encoding="utf-8")
    heading = f"### Parameters of the {name} node"
    assert page.count(heading) == 1
    section = re.split(r"^#", page.split(heading)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    assert rows == [documentation_row(spec) for spec in TABLES[name]]


def documentation_row(spec: ParameterSpec) -> list[str]:
    types = {bool: "bool", int: "integer", float: "double", str: "string"}
    default = str(spec.default).lower() if isinstance(spec.default, bool) else str(spec.default) or "(empty)"
    allowed = ""
    if spec.choices is not None:
        allowed = ", ".join(spec.choices)
    elif spec.minimum is not None and spec.maximum is not None:
        allowed = f"{spec.minimum:.12g} to {spec.maximum:.12g}"
    return [
        f"`{spec.name}`",
        types[type(spec.default)],
        default,
        allowed,
        spec.changes.value,
        spec.description,
    ]


def test_defaults_hold_until_somebody_says_otherwise(context: Context) -> None:
    parameters = Parameters(node_with(context, speed_hz=4.0), [SPEED, COLOUR])
    assert dict(parameters.values) == {"speed_hz": 4.0, "colour": "red"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"speed_hz": 4}, "parameter speed_hz must be a floating point number (with a decimal point), not 4"),
        ({"speed_hz": 40.0}, "parameter speed_hz must lie between 0.5 and 10, not 40.0"),
        ({"speed_hz": float("nan")}, "parameter speed_hz must be a finite number, not nan"),
        ({"count": 9}, "parameter count must lie between 0 and 5, not 9"),
        ({"count": True}, "parameter count must be a whole number, not True"),
        ({"colour": "green"}, "parameter colour must be one of red, blue, not 'green'"),
        (
            {"colour": "green", "count": 9},
            "parameter count must lie between 0 and 5, not 9; colour must be one of red, blue, not 'green'",
        ),
    ],
)
def test_a_wrong_value_at_the_start_is_refused_with_a_sentence(
    context: Context, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Parameters(node_with(context, **given), [SPEED, COUNT, COLOUR])


RENAMED = {"pace": "speed_hz", "old": "colour: use red in place of true"}
PATH = ParameterSpec("path", "", "Where.", Changes.ANY_TIME, refused={"none": "in place of none leave path empty"})


def test_names_and_values_of_an_earlier_version_are_refused_with_the_present_ones(context: Context) -> None:
    sentence = (
        "parameter pace is now speed_hz; old is now colour: use red in place of true; in place of none leave path empty"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Parameters(node_with(context, pace=4.0, old=True, path="none"), [SPEED, COLOUR, PATH], renamed=RENAMED)


def test_setting_a_parameter_by_its_earlier_name_is_refused_with_the_present_one(context: Context) -> None:
    node = node_with(context)
    parameters = Parameters(node, [SPEED, COLOUR, PATH], renamed=RENAMED)
    with pytest.raises(RenamedParameterError, match=r"^parameter pace is now speed_hz$"):
        node.set_parameters([Parameter("pace", value=4.0)])
    assert node.set_parameters([Parameter("speed_hz", value=4.0)])[0].successful
    (result,) = node.set_parameters([Parameter("path", value="none")])
    assert (result.successful, result.reason) == (False, "in place of none leave path empty")
    assert dict(parameters.values) == {"speed_hz": 4.0, "colour": "red", "path": ""}


def test_every_earlier_name_of_the_caption_node_is_followed_by_a_present_one() -> None:
    present = {spec.name for spec in CAPTION_NODE_PARAMETERS}
    assert not present & RENAMED_PARAMETERS.keys()
    assert all(re.split(r"\W", now)[0] in present for now in RENAMED_PARAMETERS.values())


def test_a_live_parameter_changes_and_its_owner_is_told(context: Context) -> None:
    node = node_with(context)
    changes: list[set[str]] = []
    parameters = Parameters(node, [SPEED, COLOUR], on_change=changes.append)
    before = parameters.values
    result = node.set_parameters_atomically([Parameter("speed_hz", value=5.0), Parameter("colour", value="blue")])
    assert result.successful
    assert dict(parameters.values) == {"speed_hz": 5.0, "colour": "blue"}
    assert dict(before) == {"speed_hz": 2.0, "colour": "red"}, "a snapshot stays as it was"
    assert changes == [{"speed_hz", "colour"}]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("speed_hz", 11.0, "range"),
        ("speed_hz", "fast", "type"),
        ("speed_hz", float("nan"), "finite|range"),
        ("colour", "green", "one of red, blue"),
        ("count", 4, "unconfigured"),
        ("name", "you", "read-only|read only"),
    ],
)
def test_a_bad_value_is_refused_with_a_reason_and_nothing_changes(
    context: Context, name: str, value: Any, reason: str
) -> None:
    node = node_with(context)
    changes: list[set[str]] = []
    parameters = Parameters(node, [SPEED, COUNT, COLOUR, NAME], is_configured=lambda: True, on_change=changes.append)
    (result,) = node.set_parameters([Parameter(name, value=value)])
    assert not result.successful
    assert re.search(reason, result.reason), result.reason
    assert dict(parameters.values) == {"speed_hz": 2.0, "count": 3, "colour": "red", "name": "me"}
    assert not changes


def test_what_is_fixed_while_configured_changes_before(context: Context) -> None:
    node = node_with(context)
    configured = False
    parameters = Parameters(node, [COUNT], is_configured=lambda: configured)
    assert node.set_parameters([Parameter("count", value=4)])[0].successful
    configured = True
    assert not node.set_parameters([Parameter("count", value=5)])[0].successful
    assert parameters.values["count"] == 4


def test_parameters_of_others_are_left_alone(context: Context) -> None:
    node = node_with(context)
    changes: list[set[str]] = []
    Parameters(node, [SPEED], on_change=changes.append)
    node.declare_parameter("mine", 1)
    assert node.set_parameters([Parameter("mine", value=2)])[0].successful
    assert node.set_parameters([Parameter("use_sim_time", value=True)])[0].successful
    assert not changes
