"""A long JSON object, member by member: the same as all at once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.sources.json_members import members, value_at

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES, max_size=6), st.sampled_from([None, 0, 3]), st.booleans())
def test_members_are_those_that_the_library_finds(
    content: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only)
    found = list(members(f" {text}\n"))
    assert {key: value for key, _, value in found} == content
    assert [value_at(f" {text}\n", start) for _, start, _ in found] == list(content.values())


def test_repeated_names_are_found_as_often_as_they_are_there() -> None:
    assert [value for _, _, value in members('{"0": 1, "0": 2}')] == [1, 2]


@given(st.text(alphabet='{}[]",: 0a\n', max_size=12))
def test_what_the_library_refuses_is_refused(text: str) -> None:
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    if is_object:
        assert {key: value for key, _, value in members(text)} == json.loads(text)
    else:
        with pytest.raises(ValueError, match=r"Expecting|Extra data|Invalid|Unterminated|Illegal"):
            list(members(text))
