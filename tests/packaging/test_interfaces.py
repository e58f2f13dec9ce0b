"""The ROS messages and services: readable without ROS, and the same as the built ones."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = sorted(ROOT.glob("msg/*.msg"))
SERVICES = sorted(ROOT.glob("srv/*.srv"))


def fields_of(path):
    """The names of the fields, in order; one list for a message, two for a service."""
    pattern = re.compile(r"^[\w/\[\]]+ +(\w+)(?!\w|=)", re.MULTILINE)
    return [pattern.findall(part) for part in path.read_text().split("---\n")]


@pytest.mark.needs_ros
@pytest.mark.parametrize("path", [*MESSAGES, *SERVICES], ids=lambda path: path.name)
def test_the_built_interface_is_that_of_the_checkout(path):
    """Fails too where the installed package is older than the checkout: `make test` builds it anew."""
    built = getattr(importlib.import_module(f"smart_caption_ros.{path.suffix[1:]}"), path.stem)
    parts = [built] if path.suffix == ".msg" else [built.Request, built.Response]
    assert [list(part.get_fields_and_field_types()) for part in parts] == fields_of(path)
