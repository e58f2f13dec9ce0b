"""`smart-caption watch` without a terminal: lines, JSON, and bad input in one sentence."""

import json
import sys

import cv2
import pytest

from tests.frames import blobs


def test_a_source_gives_one_json_object_for_each_picture(run, pictures, tiny_bundle):
    (pictures / "1.png").write_bytes(b"no picture")
    result = run("watch", "--source", pictures, "--bundle", tiny_bundle, "--json", "--interval", 0)
    assert result.exit_code == 0
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(record["camera"], record["image"]) for record in records] == [("kitchen", "0.png"), ("kitchen", "2.png")]
    for record in records:
        assert record["status"] in ("ok", "nothing found")
        assert (record["stamp"], record["pose"]) == (None, None)
        assert record["age_ms"] > 0
        assert {"text", "words", "objects", "nouns", "coverage", "timing_ms", "model", "engine"} <= record.keys()
    assert "1.png" in result.stderr


def test_without_a_terminal_captions_are_lines_and_count_ends_them(run, pictures, tiny_bundle):
    result = run("watch", "--source", pictures, "--bundle", tiny_bundle, "--loop", "--interval", 0, "--count", 5)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 5
    assert all(" kitchen: " in line and "\x1b" not in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--source", "nowhere"], 1, "there is no file or folder nowhere"),
        (["--source", "99"], 1, "cannot open camera 99"),
        (["--source", __file__], 1, "is not an image, a video or a ROS 2 bag"),
        (["--source", "KITCHEN", "--bundle", "nowhere"], 1, "nowhere: no such bundle"),
        (["--source", "KITCHEN", "--camera", "garden"], 2, "'garden' is not one of kitchen"),
        (["--source", "KITCHEN", "--topic", "a", "--topic", "b"], 2, "the one image topic of a bag"),
        (["--source", "KITCHEN", "--topic", "a"], 1, "is not a ROS 2 bag"),
        (["--engine", "steam"], 2, "'steam' is not one of"),
        (["--bundle", "nowhere"], 2, "needs --source"),
    ],
)
def test_bad_input_is_one_sentence(run, pictures, arguments, status, sentence):
    result = run("watch", *(str(pictures) if argument == "KITCHEN" else argument for argument in arguments))
    assert (result.exit_code, result.stdout) == (status, "")
    assert sentence in " ".join(result.stderr.replace("│", " ").split())
    if status == 1:
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["watch", "demo", "serve --port 0"])
@pytest.mark.parametrize(
    ("missing", "sentence"),
    [(["rclpy", "smart_caption_ros.msg"], "needs ROS 2"), (["smart_caption_ros.msg"], "needs the messages of this")],
)
def test_without_ros_a_sentence_says_what_to_do(run, monkeypatch, command, missing, sentence):
    if command.startswith("serve"):
        pytest.importorskip("uvicorn", reason="needs the extra serve")
    loaded = ("smart_caption_ros.nodes.live", "smart_caption_ros.nodes.demo", "rclpy.")
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    result = run(*command.split())
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.needs_ros
def test_a_wrong_domain_is_one_sentence(run, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "many")
    result = run("watch")
    assert result.exit_code == 1
    assert "ROS 2 does not start" in result.stderr


@pytest.mark.parametrize(
    "command", ["describe", "watch --count 1 --source", "describe --json", "watch --json --source"]
)
def test_control_characters_of_a_file_name_do_not_reach_the_terminal(run, tmp_path, tiny_bundle, command):
    picture = tmp_path / "a\x1b]0;owned\x07\x1b[31mred\nline\u202e.png"
    picture.write_bytes(cv2.imencode(".png", blobs(1, 48, 64))[1].tobytes())
    result = run(*command.split(), picture, "--bundle", tiny_bundle)
    assert result.exit_code == 0
    output = result.stdout + result.stderr
    assert "owned" in output
    assert not set(output) & set("\x1b\x07\u202e")
    assert "red\nline" not in output
