"""Text from outside cannot move a cursor, leave its line or fill a screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.text import escaped, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a  cup\n\ton", "a cup on"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("caf\u00e9 \u4e2d", "caf\u00e9 \u4e2d"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("a" + "\u0301" * 50, "a\u0301\u0301"),
        ("x" * 300, "x" * 197 + "..."),
        ("\ud800", "\\ud800"),
    ],
)
def test_text_is_visible_and_bounded(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b]0;owned\x07.jpg", "a\\x1b]0;owned\\x07.jpg"),
        ("two\nlines\t\x9b5A", "two\\nlines\\t\\x9b5A"),
        ("two  spaces", "two  spaces"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_is_escaped_keeps_its_length_and_its_spaces(text, shown):
    assert escaped(text) == shown


@given(st.text())
def test_nothing_that_is_escaped_or_visible_moves_the_cursor(text):
    assert all(character.isprintable() or character.isspace() for character in escaped(text))
    assert "\n" not in escaped(text)
    assert visible(text).isprintable()
