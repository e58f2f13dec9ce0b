"""The pages on deployment: their links lead somewhere, and their commands name files that are installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "QUALITY_DECLARATION.md",
        "docker/README.md",
        "docs/deployment.md",
        "docs/running_on_a_robot.md",
    )
]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_files_that_the_commands_install_are_in_the_package() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:\$share|smart_caption_ros\))/(config/\S+)", page)
    assert len(named) >= 6
    assert all((ROOT / name).is_file() for name in named)


def test_the_quality_declaration_is_linked_from_the_readme() -> None:
    assert "(QUALITY_DECLARATION.md)" in (ROOT / "README.md").read_text(encoding="utf-8"), "REP 2004, 3.iii"
