"""A log as a CSV file, and back: exactly."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.caption_log import (
    CaptionLog,
    CaptionLogError,
    LoggedCaption,
    LoggedNoun,
    LoggedObject,
    LoggedPose,
    LogReader,
)
from smart_caption_ros.caption_log.csv_files import export_csv, import_csv
from smart_caption_ros.caption_log.logged_caption import ADDED_COLUMNS
from tests.caption_log.rows import JPEG, full_row, row

TEXTS = st.text(max_size=30)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
COORDINATES = st.floats(-1e300, 1e300)
TIMES = st.integers(0, 2**62)
SUPPORTED = st.none() | st.booleans()
NOUNS = st.builds(LoggedNoun, TEXTS, SUPPORTED) | st.builds(
    LoggedNoun, TEXTS, SUPPORTED, st.integers(0, 9), st.integers(1, 3), st.none() | st.integers(0, 3)
)
ROWS = st.builds(
    LoggedCaption,
    stamp_ns=TIMES,
    wall_time_ns=TIMES,
    robot=TEXTS,
    camera=TEXTS,
    text=TEXTS,
    frame_id=TEXTS,
    score=st.none() | NUMBERS,
    status=st.sampled_from(["ok", "low confidence"]),
    model=TEXTS,
    objects=st.lists(
        st.builds(LoggedObject, TEXTS, st.none() | NUMBERS, st.tuples(*[COORDINATES] * 4)), max_size=3
    ).map(tuple),
    nouns=st.lists(NOUNS, max_size=3).map(tuple),
    coverage=st.none() | NUMBERS,
    confidence=st.none() | NUMBERS,
    calibrated_confidence=st.none() | NUMBERS,
    image_size=st.none() | st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    pose=st.none() | st.builds(LoggedPose, TEXTS, st.tuples(*[COORDINATES] * 3), st.tuples(*[COORDINATES] * 4)),
    picture=st.none() | st.binary(max_size=40).map(lambda data: b"\xff\xd8\xff" + data + b"\xff\xd9"),
)


def rows_of(path: Path) -> list[LoggedCaption]:
    with LogReader(path) as reader:
        return list(reader.all_rows())


@settings(max_examples=15)
@given(st.lists(ROWS, max_size=4), st.booleans())
def test_export_and_import_give_the_same_rows(rows: list[LoggedCaption], in_a_folder: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        with CaptionLog(folder / "one.db") as log:
            log.add(rows)
        before = rows_of(folder / "one.db")
        assert len(before) <= len(rows)
        export_csv(before, folder / "log.csv", folder / "pictures" if in_a_folder else None)
        with CaptionLog(folder / "two.db") as log:
            assert import_csv(folder / "log.csv", log.path) == (len(before), 0)
            assert import_csv(folder / "log.csv", log.path) == (0, len(before))
        assert rows_of(folder / "two.db") == before


def test_a_file_of_an_older_version_is_imported_with_unknown_columns(exported: Path, tmp_path: Path) -> None:
    with exported.open(newline="") as stream:
        rows = [{k: v for k, v in line.items() if k not in ADDED_COLUMNS} for line in csv.DictReader(stream)]
    with exported.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    assert import_csv(exported, tmp_path / "log.db") == (2, 0)
    unknown = {"confidence": None, "calibrated_confidence": None, "image_size": None}
    assert rows_of(tmp_path / "log.db")[0] == replace(full_row(), id=1, **unknown)


def test_another_row_with_the_id_of_one_that_is_there_gets_the_next_one(tmp_path: Path) -> None:
    with CaptionLog(tmp_path / "log.db") as log:
        number = log.append(row("a cup"))
        assert log.add([row("a dog", id=number)]) == (1, 0)
    assert [(caption.id, caption.text) for caption in rows_of(log.path)] == [(number, "a cup"), (number + 1, "a dog")]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    rows = [replace(full_row(), id=1), replace(full_row(), id=2)]
    export_csv(rows, tmp_path / "log.csv", tmp_path / "pictures")
    return tmp_path / "log.csv"


def changed(path: Path, column: str, value: str) -> None:
    """Change a column of the last line."""
    with path.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    lines[-1][column] = value
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)


@pytest.fixture
def exported_in_one_file(tmp_path: Path) -> Path:
    export_csv(
        [replace(full_row(), id=1), replace(full_row(), id=2, picture=JPEG[:4] + bytes(300) + JPEG[4:])],
        tmp_path / "log.csv",
    )
    return tmp_path / "log.csv"


@pytest.mark.parametrize("missing", [1, 2, 3, 4, 5, 40, 200, 399])
def test_of_a_file_that_was_cut_off_no_half_picture_is_imported(
    exported_in_one_file: Path, tmp_path: Path, missing: int
) -> None:
    content = exported_in_one_file.read_bytes().rstrip()
    exported_in_one_file.write_bytes(content[:-missing])
    with CaptionLog(tmp_path / "log.db") as log:
        with pytest.raises(CaptionLogError, match=r"line 3: picture_base64 is not (base64|a whole JPEG)"):
            import_csv(exported_in_one_file, log.path)
        assert log.captions == 0


@pytest.mark.parametrize("name", ["{secret}", "pictures/../../secret/1.jpg", "link.jpg", "pipe.jpg", "pictures"])
def test_only_pictures_beside_the_file_are_imported(exported: Path, tmp_path: Path, name: str) -> None:
    """Whoever sends a file of captions must not make the log read other files of the machine, or wait for a pipe."""
    folder = tmp_path / "inner"
    folder.mkdir()
    exported = exported.rename(folder / "log.csv")
    (tmp_path / "pictures").rename(folder / "pictures")
    secret = tmp_path / "secret" / "1.jpg"
    secret.parent.mkdir()
    secret.write_bytes(JPEG)
    (folder / "link.jpg").symlink_to(secret)
    os.mkfifo(folder / "pipe.jpg")
    changed(exported, "picture_file", name.format(secret=secret))
    with CaptionLog(tmp_path / "log.db") as log:
        with pytest.raises(CaptionLogError, match=r"line 3: .* (is not in the folder|is not a file)"):
            import_csv(exported, log.path)
        assert log.captions == 0
        if "secret" in name:
            assert import_csv(exported, log.path, pictures=secret.parent) == (2, 0)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("id", "twelve", "line 3: invalid literal"),
        ("id", "-1", "id is not between 0 and 2"),
        ("score", "good", "could not convert string to float"),
        ("objects", '{"cup": 1}', "line 3: "),
        ("objects", '[["cup", 1.0, [1, 2, 3]]]', "line 3: "),
        ("nouns", '[["cup", "yes"]]', "not a list of nouns"),
        ("nouns", "[[3, true]]", "not a name: 3"),
        ("x", "", "could not convert string to float"),
        ("picture_file", "log.csv", "log.csv is not a whole JPEG picture"),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_written(
    exported: Path, tmp_path: Path, column: str, value: str, sentence: str
) -> None:
    changed(exported, column, value)
    with CaptionLog(tmp_path / "log.db") as log:
        with pytest.raises(CaptionLogError, match=sentence):
            import_csv(exported, log.path)
        assert log.captions == 0


def test_a_byte_order_mark_of_a_spreadsheet_is_no_part_of_the_first_column(exported: Path, tmp_path: Path) -> None:
    exported.write_bytes(b"\xef\xbb\xbf" + exported.read_bytes())
    with CaptionLog(tmp_path / "log.db") as log:
        assert import_csv(exported, log.path) == (2, 0)


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    with CaptionLog(tmp_path / "log.db") as log:
        for content, sentence in (
            (b"a,b\n1,2\n", "line 1: the columns id, stamp_ns"),
            (b"", "the columns id, stamp_ns"),
            (b"\xff\xfe\x00binary", "the columns id, stamp_ns|line contains NUL"),
        ):
            other.write_bytes(content)
            with pytest.raises(CaptionLogError, match=sentence):
                import_csv(other, log.path)


def test_a_line_that_was_cut_off_is_refused(exported: Path, tmp_path: Path) -> None:
    content = exported.read_text()
    exported.write_text(content[: len(content) - 80])
    with (
        CaptionLog(tmp_path / "log.db") as log,
        pytest.raises(
            CaptionLogError, match=r"line \d: (unexpected end of data|the line has another number of columns)"
        ),
    ):
        import_csv(exported, log.path)
