"""The launch files of the nodes, run with stand-ins for launch."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from smart_caption_ros.files import PROFILE_VARIABLE
from tests.nodes.fake_launch import ROOT, actions_of, install

TREE = ast.parse((ROOT / "launch" / "caption.launch.py").read_text(encoding="utf-8"))


def declared_arguments() -> dict[str, str]:
    """Name and default value of every argument, the default as it stands in the source."""
    arguments = {}
    for call in ast.walk(TREE):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "DeclareLaunchArgument":
            (default,) = (keyword.value for keyword in call.keywords if keyword.arg == "default_value")
            arguments[ast.literal_eval(call.args[0])] = (
                ast.literal_eval(default) if isinstance(default, ast.Constant) else ast.unparse(default)
            )
    return arguments


def test_the_documentation_lists_every_argument_with_its_default() -> None:
    page = (ROOT / "docs" / "nodes.md").read_text(encoding="utf-8")
    table = page.split("| argument | default | meaning |")[1].split("\n\n")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", table, flags=re.MULTILINE))
    expected = {name: f"`{default}`" if default else "(empty)" for name, default in declared_arguments().items()}
    expected["params_file"] = "the package's `config/caption.yaml`"
    expected["fast_dds_profile"] = "`shared_memory`"
    assert documented == expected


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Creates the node with the given arguments, as `ros2 launch` does."""
    install(monkeypatch)

    def create(name: str = "caption", **given: str) -> Any:
        _, (node,) = actions_of(name, f"{'camera' if name == 'demo' else name}_node", given)
        return node

    return create


def test_arguments_become_parameters_and_remaps(launch: Callable[..., Any]) -> None:
    node = launch(bundle="/b", detection_slop_s="0.5", image_topic="/camera", use_sim_time="true")
    assert node.parameters == [
        str(ROOT / "config" / "caption.yaml"),
        {"use_sim_time": True, "bundle": "/b", "detection_slop_s": 0.5},
    ]
    assert ("image", "/camera") in node.remappings


def test_without_arguments_the_parameter_file_decides(launch: Callable[..., Any]) -> None:
    """Not even use_sim_time is set: an including launch file may set it for all of its nodes."""
    node = launch()
    assert node.parameters == [str(ROOT / "config" / "caption.yaml")]
    assert (node.name, node.namespace, node.respawn) == ("caption_node", "", False)


def test_the_node_is_named_started_and_respawned_as_asked(launch: Callable[..., Any]) -> None:
    node = launch(node_name="front", autostart="false", transport="compressed", respawn="true", respawn_delay_s="0.5")
    assert node.parameters[-1] == {"autostart": False, "image_transport": "compressed"}
    assert (node.name, node.respawn, node.respawn_delay) == ("front", True, 0.5)
    assert node.on_exit is None, "a node that respawns does not end the launch"


@pytest.mark.parametrize(("profile", "environment"), [("shared_memory", {}), ("none", {PROFILE_VARIABLE: ""})])
def test_the_fast_dds_profile_is_set_for_the_process_of_the_node_alone(
    launch: Callable[..., Any], profile: str, environment: dict[str, str]
) -> None:
    assert launch(fast_dds_profile=profile).additional_env == environment
    own = str(ROOT / "config" / "fastdds_shared_memory.xml")
    assert launch(fast_dds_profile=own).additional_env == {PROFILE_VARIABLE: own}
    assert "SetEnvironmentVariable" not in ast.unparse(TREE)


def test_the_demo_starts_a_camera_in_the_namespace_of_the_captions(launch: Callable[..., Any]) -> None:
    camera = launch("demo", source="0", rate_hz="10", namespace="left")
    assert camera.parameters == [{"source": "0", "rate_hz": 10.0, "loop": True}]
    assert camera.namespace == "left"
    with pytest.raises(ValueError, match=r"^rate_hz must be a number above 0, not 'fast'$"):
        launch("demo", rate_hz="fast")
    with pytest.raises(ValueError, match=r"^loop must be true or false, not 'perhaps'$"):
        launch("demo", loop="perhaps")


def test_a_demo_that_ends_with_its_source_waits_for_the_caption_node_before_the_first_image(
    launch: Callable[..., Any],
) -> None:
    assert launch("demo", loop="False").parameters == [
        {"source": "sample:household", "rate_hz": 2.0, "loop": False},
        {"wait_for_subscribers": 1, "wait_timeout_s": 120.0},
    ]


@pytest.mark.parametrize(
    ("given", "topic"),
    [
        ({}, "robot/caption"),
        ({"namespace": "/"}, "robot/caption"),
        ({"namespace": "left"}, "caption"),
        ({"namespace": "robot"}, "caption"),
        ({"namespace": "left", "caption_topic": "words"}, "words"),
        ({"caption_topic": "/head/words"}, "/head/words"),
        ({"ros_namespace": "/robot_1"}, "caption"),
        ({"ros_namespace": "/robot_1", "namespace": "left"}, "caption"),
    ],
)
def test_a_namespace_takes_the_place_of_the_prefix_robot_unless_the_topic_is_given(
    launch: Callable[..., Any], given: dict[str, str], topic: str
) -> None:
    assert ("robot/caption", topic) in launch(**given).remappings


def test_several_cameras_have_their_topics_in_their_namespaces_or_where_their_names_stand(
    launch: Callable[..., Any],
) -> None:
    node = launch(cameras="front, rear", image_topic="/{camera}_camera/image_raw", detections="found", namespace="bot")
    assert node.parameters[1] == {"cameras": ["front", "rear"]}
    assert node.remappings == [
        ("front/image", "/front_camera/image_raw"),
        ("rear/image", "/rear_camera/image_raw"),
        ("front/detections", "front/found"),
        ("rear/detections", "rear/found"),
        ("front/caption", "front/caption"),
        ("rear/caption", "rear/caption"),
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"cameras": "front,rear", "image_topic": "/camera"},
            "image_topic: several cameras need {camera} in the place of the name, not /camera",
        ),
        ({"params_file": "/no/such.yaml"}, "params_file: there is no file /no/such.yaml"),
        ({"detection_slop": "0.5"}, "argument detection_slop is now detection_slop_s"),
        ({"detection_slop_s": "a bit"}, "detection_slop_s must be a number, not 'a bit'"),
        ({"respawn_delay_s": "soon"}, "respawn_delay_s must be a number of 0 or more, not 'soon'"),
        ({"respawn_delay_s": "-1"}, "respawn_delay_s must be a number of 0 or more, not '-1'"),
        (
            {"cameras": "front;rear"},
            "cameras must be names of letters, digits and underscores, as front,rear, not 'front;rear'",
        ),
        (
            {"image_topic": "/my camera"},
            "image_topic must be the name of a topic, as /camera/image_raw, not '/my camera'",
        ),
        ({"caption_topic": "words "}, "caption_topic must be the name of a topic, as /camera/image_raw, not 'words '"),
        (
            {"cameras": "front", "detections": "{camera}/a b"},
            "detections must be the name of a topic, as /camera/image_raw, not 'front/a b'",
        ),
        ({"use_sim_time": "yes"}, "use_sim_time must be true or false, not 'yes'"),
        ({"required": "maybe"}, "required must be true or false, not 'maybe'"),
        (
            {"fast_dds_profile": "/no/such.xml"},
            "fast_dds_profile must be shared_memory, none or a file: there is no file /no/such.xml",
        ),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(
    launch: Callable[..., Any], given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        launch(**given)


@pytest.mark.parametrize("name", ["caption", "caption_log"])
def test_a_node_that_fails_ends_the_launch_where_it_is_required_and_else_its_status_is_1_in_the_end(
    launch: Callable[..., Any], name: str
) -> None:
    """A robot's launch file may include this one: by default its other nodes go on."""
    problems: list[dict[str, str]] = []
    context = SimpleNamespace(asyncio_loop=SimpleNamespace(call_exception_handler=problems.append))
    failed = SimpleNamespace(returncode=1, process_name="front")
    on_exit = launch(name, respawn="false").on_exit
    on_exit(SimpleNamespace(returncode=0, process_name="front"), context)
    assert not problems
    on_exit(failed, context)
    assert problems == [{"message": "front ended with status 1"}], "launch returns 1 after its handler was called"
    on_exit = launch(name, respawn="False", required="True").on_exit
    on_exit(SimpleNamespace(returncode=0, process_name="front"), None)
    with pytest.raises(RuntimeError, match="front ended with status 1"):
        on_exit(failed, None)
    assert launch(name, respawn="true", required="true").on_exit is None, "it comes back"


@pytest.mark.parametrize("written", ["front,rear", "front, rear", "[front, rear]", "['front','rear']", "front rear"])
def test_names_of_cameras_may_be_written_as_a_list(launch: Callable[..., Any], written: str) -> None:
    assert launch(cameras=written).parameters[1] == {"cameras": ["front", "rear"]}


@pytest.mark.parametrize(("written", "value"), [("True", True), ("true", True), ("FALSE", False)])
def test_true_and_false_may_be_written_as_python_does(launch: Callable[..., Any], written: str, value: bool) -> None:
    assert launch(use_sim_time=written, autostart=written).parameters[1] == {"use_sim_time": value, "autostart": value}


def test_the_log_is_started_with_its_file(launch: Callable[..., Any]) -> None:
    assert launch("caption_log").parameters == [str(ROOT / "config" / "caption_log.yaml")]
    assert launch("caption_log", path="/data/c.db").parameters[1:] == [{"path": "/data/c.db"}]
    with pytest.raises(ValueError, match="there is no file /missing"):
        launch("caption_log", params_file="/missing")


def test_a_wrong_argument_of_the_log_is_refused(launch: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"^respawn must be true or false, not 'never'$"):
        launch("caption_log", respawn="never")
