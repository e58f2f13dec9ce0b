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
    ("content", "complaint"), [(b"{}\n" + b"[" * 99999, "line 2: not JSON"), (b"[1]", "line 1: expected an object")]
)
def test_a_line_that_is_no_object_is_named(content, complaint, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_json_lines(tmp_path / "a.jsonl")


@pytest.mark.parametrize(("read", "latin1"), [(read_json, "is not JSON"), (read_json_lines, "cannot be read")])
def test_unreadable_files_are_named(tmp_path, read, latin1):
    (tmp_path / "latin1").write_bytes(b"\xe9")
    for name, complaint in (("latin1", latin1), ("nowhere", "(: no such file|cannot be read: No such file)")):
        with pytest.raises(DataError, match=f"{name} ?{complaint}"):
            read(tmp_path / name)
