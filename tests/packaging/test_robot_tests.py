"""The robot side's tests need neither torch nor the workstation's code."""

import re

import pytest

from tests.packaging.imports import ROOT, imports_of, imports_of_file

ROBOT_FOLDERS = (
    "bags", "caption_log", "captioning", "cli", "detection", "engines", "evaluation", "fleet", "grounding",
    "imaging", "live", "measuring", "nodes", "serving", "sources", "system", "viewing",
)  # fmt: skip
WORKSTATION = {"torch", "torchvision", "training", "export", "recipes", "simulation", "benchmarks"}
WORKSTATION_FIXTURES = ("tiny_checkpoint", "exported_bundle")


def test_every_room_of_the_robot_side_that_has_tests_is_checked_here() -> None:
    rooms = {path.parent.name for path in (ROOT / "smart_caption_ros").glob("*/__init__.py")}
    assert {path.name for path in (ROOT / "tests").iterdir() if path.name in rooms} <= set(ROBOT_FOLDERS)


@pytest.mark.parametrize("folder", ROBOT_FOLDERS)
def test_no_import_of_a_test_leads_to_torch_or_the_workstation(folder: str) -> None:
    left = {file: [file] for file, _ in imports_of(f"tests/{folder}")}
    assert left
    seen: set[str] = set()
    while left:
        file, chain = left.popitem()
        seen.add(file)
        for module in imports_of_file(ROOT / file):
            assert module.split(".")[0] not in WORKSTATION, " -> ".join([*chain, module])
            helper = f"{module.replace('.', '/')}.py"
            # The root's conftest imports torch for the fixtures below, when they are requested.
            if helper not in seen and helper != "tests/conftest.py" and (ROOT / helper).is_file():
                left[helper] = [*chain, helper]


@pytest.mark.parametrize("folder", ROBOT_FOLDERS)
def test_no_test_requests_a_fixture_that_needs_torch(folder: str) -> None:
    pattern = re.compile(rf"\b({'|'.join(WORKSTATION_FIXTURES)})\b")
    files = (ROOT / "tests" / folder).rglob("*.py")
    assert not [str(path) for path in files if pattern.search(path.read_text())]


def test_the_shared_fixtures_import_torch_only_when_they_are_requested() -> None:
    text = (ROOT / "tests" / "conftest.py").read_text()
    top_level = re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)
    assert "smart_caption_ros" in top_level
    assert not WORKSTATION & set(top_level)
    assert not re.search(r"^from tests\b", text, re.MULTILINE)
