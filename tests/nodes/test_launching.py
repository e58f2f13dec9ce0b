"""How the launch files use their arguments; tests/system/test_launch.py launches them."""

import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from smart_caption_ros.nodes import launching

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
DEFAULTS = {name: default for name, (default, _) in launching.CAPTION_ARGUMENTS.items()}


def test_the_launch_files_have_few_arguments():
    files = [path for path in (ROOT / "launch").glob("*.launch.py") if path.name != "caption.launch.py"]
    declared = [
        call
        for path in files
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "DeclareLaunchArgument"
    ]
    assert len(declared) + len(DEFAULTS) <= 20


@pytest.mark.parametrize(
    ("given", "overrides"),
    [
        ({}, None),
        (
            {"bundle": "/b", "use_sim_time": "True", "detector": "d.onnx"},
            {"bundle": "/b", "detector": "d.onnx", "use_sim_time": True},
        ),
        ({"use_sim_time": "FALSE"}, {"use_sim_time": False}),
        *(
            ({"cameras": written}, {"cameras": ["front", "rear"]})
            for written in ("front,rear", "front, rear", "[front, rear]", "['front','rear']", "front rear")
        ),
    ],
)
def test_arguments_become_parameters_and_the_file_decides_on_the_others(given, overrides):
    """Without an argument use_sim_time is not set, because an including launch file may set it for all of its nodes."""
    file, *others = launching.caption_parameters({**DEFAULTS, **given}, CONFIG)
    assert file == str(CONFIG / "caption.yaml")
    assert others == ([overrides] if overrides else [])


@pytest.mark.parametrize(
    ("given", "pushed", "topic"),
    [
        ({}, "", "robot/caption"),
        ({"namespace": "/"}, "", "robot/caption"),
        ({"namespace": "left"}, "", "caption"),
        ({"namespace": "left", "caption_topic": "words"}, "", "words"),
        ({"caption_topic": "/head/words"}, "", "/head/words"),
        ({}, "/robot_1", "caption"),
        ({"namespace": "left"}, "/robot_1", "caption"),
    ],
)
def test_a_namespace_takes_the_place_of_the_prefix_robot_unless_the_topic_is_given(given, pushed, topic):
    assert launching.caption_remappings({**DEFAULTS, **given}, pushed) == [
        ("image", "image"),
        ("detections", "detections"),
        ("robot/caption", topic),
    ]


def test_several_cameras_have_their_topics_in_their_namespaces_or_where_their_names_stand():
    given = {"cameras": "front, rear", "image_topic": "/{camera}_camera/image_raw", "detections": "found"}
    assert launching.caption_remappings({**DEFAULTS, **given}) == [
        ("front/image", "/front_camera/image_raw"),
        ("rear/image", "/rear_camera/image_raw"),
        ("front/detections", "front/found"),
        ("rear/detections", "rear/found"),
        ("front/caption", "front/caption"),
        ("rear/caption", "rear/caption"),
    ]


A_TOPIC = "must be the name of a topic, as /camera/image_raw, not"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"cameras": "front,rear", "image_topic": "/camera"},
            "image_topic: with several cameras the topic has to contain {camera}, unlike /camera",
        ),
        (
            {"cameras": "front;rear"},
            "cameras must be names of letters, digits and underscores, as front,rear, not 'front;rear'",
        ),
        ({"image_topic": "/my camera"}, f"image_topic {A_TOPIC} '/my camera'"),
        ({"image_topic": "/"}, f"image_topic {A_TOPIC} '/'"),
        ({"caption_topic": "words "}, f"caption_topic {A_TOPIC} 'words '"),
        ({"caption_topic": "/"}, f"caption_topic {A_TOPIC} '/'"),
        ({"cameras": "front", "detections": "{camera}/a b"}, f"detections {A_TOPIC} 'front/a b'"),
        ({"params_file": "/no/such.yaml"}, "params_file: there is no file /no/such.yaml"),
        ({"use_sim_time": "yes"}, "use_sim_time must be true or false, not 'yes'"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(given, sentence):
    values = {**DEFAULTS, **given}
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        launching.caption_parameters(values, CONFIG), launching.caption_remappings(values)


def test_arguments_that_a_launch_file_does_not_have_are_pointed_out(monkeypatch):
    file = ROOT / "launch" / "caption.launch.py"
    given = ["bundle:=/b", "nonsense:=1", "node_name:=front"]
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "smart_caption_ros", "caption.launch.py", *given])
    warning = launching.unknown_arguments(given, file, launching.CAPTION_ARGUMENTS)
    assert warning == "caption.launch.py has no argument nonsense, node_name: the value is not used"
    assert not launching.unknown_arguments(given[:1], file, launching.CAPTION_ARGUMENTS)
    assert not launching.unknown_arguments(given, file, launching.CAPTION_ARGUMENTS, ["nonsense", "node_name"])
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "my_robot", "robot.launch.py", *given])
    assert not launching.unknown_arguments(given, file, launching.CAPTION_ARGUMENTS), "they may be the other file's"


def test_a_process_that_fails_gives_the_launch_a_status_in_the_end_or_ends_it():
    """A robot's launch file may include one of these: its other nodes go on."""
    problems = []
    context = SimpleNamespace(asyncio_loop=SimpleNamespace(call_exception_handler=problems.append))
    failed, ended = (SimpleNamespace(returncode=status, process_name="front") for status in (1, 0))
    launching.remember_failure(ended, context)
    assert not problems
    launching.remember_failure(failed, context)
    assert problems == [{"message": "front ended with status 1"}], "launch returns 1 after its handler was called"
    launching.fail_with_the_process(ended, None)
    with pytest.raises(RuntimeError, match="front ended with status 1"):
        launching.fail_with_the_process(failed, None)
