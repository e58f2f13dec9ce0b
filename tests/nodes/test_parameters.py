"""Each parameter is declared once in a table; parameter files and the running node agree with it."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes.camera.parameters import CAMERA_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS, missing_detector
from smart_caption_ros.nodes.caption_log.parameters import CAPTION_LOG_PARAMETERS
from smart_caption_ros.nodes.parameters import (
    Changes,
    Parameters,
    ParameterSpec,
)

ROOT = Path(__file__).resolve().parents[2]
TABLES = {"caption": CAPTION_NODE_PARAMETERS, "camera": CAMERA_NODE_PARAMETERS, "caption_log": CAPTION_LOG_PARAMETERS}
EVERY_PARAMETER = [pytest.param(spec, id=f"{name}-{spec.name}") for name, table in TABLES.items() for spec in table]
SPEED = ParameterSpec("speed_hz", 2.0, "How fast.", Changes.ANY_TIME, limits=(0.5, 10.0))
COUNT = ParameterSpec("count", 3, "How many.", Changes.WHILE_UNCONFIGURED, limits=(0, 5))
COLOUR = ParameterSpec("colour", "red", "Which.", Changes.ANY_TIME, choices=("red", "blue"))
NAME = ParameterSpec("name", "me", "Who.", Changes.ONLY_AT_START)
NAMES = ParameterSpec("names", (), "Who.", Changes.ONLY_AT_START, pattern=("[a-z]+", "a name of letters"))
NEEDS_COUNT = "colour blue needs a count above 3, in the same request or before"


def blue_needs_a_count(values):
    return NEEDS_COUNT if values["colour"] == "blue" and values["count"] <= 3 else None


@pytest.fixture
def context(node):
    return node.context


def node_with(context, **given):
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    return Node("test_parameters", context=context, parameter_overrides=overrides)


@pytest.mark.parametrize("spec", EVERY_PARAMETER)
def test_every_parameter_is_described_and_its_default_is_legal(spec):
    assert spec.error_in(spec.default) is None
    assert spec.description[0].isupper()
    assert spec.description.endswith(".")
    descriptor = spec.descriptor()
    assert descriptor.description == spec.description
    assert descriptor.read_only == (spec.changes is Changes.ONLY_AT_START)
    if isinstance(spec.default, int | float) and not isinstance(spec.default, bool):
        assert descriptor.integer_range or descriptor.floating_point_range, "a number needs a range"


@pytest.mark.parametrize("name", TABLES)
def test_the_parameter_file_holds_exactly_the_defaults(name):
    text = (ROOT / "config" / f"{name}.yaml").read_text(encoding="utf-8")
    (content,) = yaml.safe_load(text).values()
    expected = {s.name: list(s.default) if isinstance(s.default, tuple) else s.default for s in TABLES[name]}
    assert content == {"ros__parameters": expected}
    for parameter, value in content["ros__parameters"].items():
        assert type(value) is type(expected[parameter]), f"rclpy takes no other type for {parameter}"


def test_a_misspelt_parameter_is_pointed_out(context, capfd):
    of_others = {"use_sim_time": False, "start_type_description_service": True, "diagnostic_updater.period": 1.0}
    Parameters(node_with(context, speed_zh=4.0, **of_others), [SPEED, COLOUR])
    log = capfd.readouterr().err
    assert "there is no parameter speed_zh: its value is not used; did you mean speed_hz?" in log
    assert log.count("there is no parameter") == 1, "others declare theirs"


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
        ({"colour": "blue"}, f"parameter {NEEDS_COUNT}"),
        ({"names": "a"}, "parameter names must be a list of strings, not 'a'"),
        ({"names": [1]}, "parameter names must be a list of strings, not (1,)"),
        ({"names": ["a", "B c"]}, "parameter names must have a name of letters in each place, not 'B c'"),
        ({"names": ["a", "b", "a"]}, "parameter names has 'a' twice"),
    ],
)
def test_a_wrong_value_at_the_start_is_refused_with_a_sentence(context, given, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Parameters(node_with(context, **given), [SPEED, COUNT, COLOUR, NAMES], rule=blue_needs_a_count)


@pytest.mark.parametrize("given", [{}, {"names": None}, {"names": ["a", "b"]}])
def test_a_list_of_strings_may_be_empty_and_is_read_and_described_like_any_parameter(context, given):
    """rclpy reads an empty list in a parameter file as None."""
    node = node_with(context, **given)
    names = tuple(given.get("names") or ())
    assert dict(Parameters(node, [NAMES]).values) == {"names": names}
    parameter = node.get_parameter("names")
    assert (parameter.type_, tuple(parameter.value)) == (Parameter.Type.STRING_ARRAY, names)
    assert node.describe_parameter("names").read_only
    (result,) = node.set_parameters([Parameter("names", value=["c"])])
    assert not result.successful


ANY_VALUE = st.one_of(
    st.tuples(st.just("speed_hz"), st.floats(0.1, 12.0)),
    st.tuples(st.just("speed_hz"), st.just(3)),
    st.tuples(st.just("count"), st.integers(-1, 6)),
    st.tuples(st.just("colour"), st.sampled_from(["red", "blue", "green"])),
    st.tuples(st.just("name"), st.just("you")),
)


def test_an_atomic_request_changes_all_of_its_parameters_or_none(context):
    node = node_with(context)
    changes = []
    table = [SPEED, COUNT, COLOUR, NAME]
    parameters = Parameters(node, table, rule=blue_needs_a_count, on_change=changes.append)

    @given(st.lists(ANY_VALUE, min_size=1, max_size=4))
    def check(request):
        before = dict(parameters.values)
        changes.clear()
        result = node.set_parameters_atomically([Parameter(name, value=value) for name, value in request])
        wanted = {**before, **dict(request)}
        right = (
            all(spec.error_in(value) is None for name, value in request for spec in table if spec.name == name)
            and not blue_needs_a_count(wanted)
            and "name" not in dict(request)
        )
        assert result.successful == right, result.reason
        assert dict(parameters.values) == (wanted if right else before)
        assert {spec.name: node.get_parameter(spec.name).value for spec in table} == dict(parameters.values)
        assert changes == ([set(dict(request))] if right else [])

    check()


def test_the_reason_of_a_refused_request_names_all_that_is_wrong_and_is_bounded(context):
    node = node_with(context)
    path = ParameterSpec("path", "", "Where.", Changes.ANY_TIME)
    Parameters(node, [COLOUR, path])
    endless = Parameter("colour", value="g" * 10**6)
    result = node.set_parameters_atomically([endless, Parameter("path", value="/\n")])
    assert result.reason.startswith("colour must be one of red, blue, not 'ggg")
    assert result.reason.endswith(r"; path must have printable characters alone, not '/\n'")
    assert len(result.reason) < 500
    (result,) = node.set_parameters([Parameter("path", value="/" * 10**6)])
    assert result.reason == "path must have at most 1024 characters, not 1000000"


def test_the_nodes_have_few_parameters():
    assert sum(map(len, TABLES.values())) <= 36, "what nobody will set is a constant"


def test_a_detector_is_named_where_objects_come_from_it(context):
    node = node_with(context, objects_from="detector")
    with pytest.raises(ValueError, match="objects_from is detector: start the node with an ONNX file in the parameter"):
        Parameters(node, CAPTION_NODE_PARAMETERS, rule=missing_detector)


def test_the_present_value_of_a_fixed_parameter_can_be_set_again(context):
    """A whole parameter file can thus be loaded into a running node."""
    node = node_with(context)
    parameters = Parameters(node, [COUNT, SPEED], is_configured=lambda: True)
    assert node.set_parameters_atomically([Parameter("count", value=3), Parameter("speed_hz", value=5.0)]).successful
    assert parameters.values["speed_hz"] == 5.0


def test_a_string_that_may_name_a_file_is_fixed_at_the_start():
    """Otherwise another node could make this one read the file."""
    changing = {
        spec.name
        for table in TABLES.values()
        for spec in table
        if isinstance(spec.default, str) and spec.choices is None and spec.changes is not Changes.ONLY_AT_START
    }
    assert changing == {"frame_id"}, "a name in messages"
