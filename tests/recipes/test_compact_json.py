"""Compact JSON."""

from recipes.compact_json import json_bytes


def test_a_document_is_one_line_of_utf_8_without_spaces_or_escapes() -> None:
    assert json_bytes({"caption": "un café", "boxes": [1, 2.5]}) == '{"caption":"un café","boxes":[1,2.5]}\n'.encode()
