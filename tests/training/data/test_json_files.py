"""Reading JSON and JSON Lines."""

import pytest

from training.data.json_files import read_json, read_json_lines
from training.errors import DataError


def test_files_are_read_as_written(tmp_path):
    (tmp_path / "a.json").write_text('{"caption": "un café"}', encoding="utf-8-sig")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n{"a": "2\u2028"}\r\n', encoding="utf-8-sig")
    assert read_json(tmp_path / "a.json") == {"caption": "un café"}
    assert read_json_lines(tmp_path / "a.jsonl") == [{"a": 1}, {"a": "2\u2028"}]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{}\nnonsense", "line 2: not JSON"),
        (b"{}\n" + b"[" * 99999, "line 2: not JSON"),
        (b"[1]", "line 1: expected an object"),
    ],
)
def test_a_line_that_is_no_object_is_named(content, complaint, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_json_lines(tmp_path / "a.jsonl")


def test_unreadable_files_are_named(tmp_path):
    (tmp_path / "latin1").write_bytes(b"\xe9")
    with pytest.raises(DataError, match="latin1 is not JSON"):
        read_json(tmp_path / "latin1")
    with pytest.raises(DataError, match="latin1 cannot be read"):
        read_json_lines(tmp_path / "latin1")
    with pytest.raises(DataError, match="nowhere: no such file"):
        read_json(tmp_path / "nowhere")
    with pytest.raises(DataError, match="nowhere cannot be read: No such file"):
        read_json_lines(tmp_path / "nowhere")
