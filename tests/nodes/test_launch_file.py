"""The launch file by its text: launch itself is not among the Python wheels."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
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
    page = (ROOT / "docs" / "running_on_a_robot.md").read_text(encoding="utf-8")
    table = page.split("| argument | default | meaning |")[1].split("\n\n")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", table, flags=re.MULTILINE))
    expected = {name: f"`{default}`" if default else "(empty)" for name, default in declared_arguments().items()}
    expected["params_file"] = "the package's `config/caption.yaml`"
    assert documented == expected


def test_the_defaults_are_the_names_that_the_node_has_by_itself() -> None:
    nodes = (ROOT / "smart_caption_ros" / "nodes" / "caption_node.py").read_text(encoding="utf-8")
    own = dict(re.findall(r'^(\w+_TOPIC) = "(.+)"$', nodes, flags=re.MULTILINE))
    arguments = declared_arguments()
    assert (arguments["image_topic"], arguments["caption_topic"]) == (own["IMAGE_TOPIC"], own["CAPTION_TOPIC"])
    assert arguments["detections"] == own["DETECTIONS_TOPIC"]
    source = ast.unparse(TREE)
    for name, argument in (
        ("IMAGE_TOPIC", "image_topic"),
        ("DETECTIONS_TOPIC", "detections"),
        ("CAPTION_TOPIC", "caption_topic"),
    ):
        assert f"({own[name]!r}, value['{argument}'])" in source, "a remap must start from the node's own name"


def test_the_arguments_that_set_parameters_name_parameters() -> None:
    parameters = yaml.safe_load((ROOT / "config" / "caption.yaml").read_text())["/**"]["ros__parameters"]
    assert {"bundle", "engine", "detector", "detection_slop"} <= parameters.keys() & declared_arguments().keys()
