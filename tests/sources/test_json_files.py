"""JSON files of data sets: marks and halves of pairs that editors and tools leave, and numbers in their spellings."""

import pytest

from smart_caption_ros.sources.json_files import read_json, whole_number


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(tmp_path / "a.json") == [1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\udc4d up"', "? up"),
        (r'"\ud83d\ud83d\udc4d"', "?\U0001f44d"),
        (r'"\uD83D\uDC4D"', "\U0001f44d"),
        (r'"\ud83d"', "?"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\\\ud83d\""', '\\?"'),
    ],
)
def test_half_a_surrogate_pair_is_replaced(tmp_path, text, value):
    (tmp_path / "a.json").write_text(text)
    assert read_json(tmp_path / "a.json") == value


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), (7.0, 7), ("7", 7), ("007", 7), (7.5, None), ("7.5", None), (True, None), ("x", None), ("", None),
     (None, None), ([7], None), (float("nan"), None), (float("inf"), None), (-1, -1), ("9" * 5000, None)],
)  # fmt: skip
def test_whole_numbers_in_their_spellings(value, number):
    assert whole_number(value) == number
