"""The tables of the documentation are those that the declarations give."""

from pathlib import Path

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from smart_caption_ros.nodes.parameter_documentation import with_tables

pytestmark = pytest.mark.needs_ros

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nodes.md"


def test_the_page_has_the_present_tables():
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, "run `make docs`"


def test_a_stale_table_is_replaced_and_the_rest_of_the_page_stays():
    page = PAGE.read_text(encoding="utf-8")
    stale = page.replace("| `autostart` | true |", "| `autostart` | false |")
    assert stale != page
    assert with_tables(stale) == page


def test_a_page_without_a_place_for_a_table_is_refused_with_a_sentence():
    page = PAGE.read_text(encoding="utf-8").replace("<!-- end of parameters of camera_node -->", "")
    with pytest.raises(ValueError, match="end of parameters of camera_node --> must stand once in the page"):
        with_tables(page)
