"""Compact JSON."""

from training.datagen.compact_json import json_bytes


def test_a_document_is_one_line_that_people_of_any_language_can_read() -> None:
    assert json_bytes({"caption": "un café", "boxes": [1, 2.5]}) == '{"caption":"un café","boxes":[1,2.5]}\n'.encode()
