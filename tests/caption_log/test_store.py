"""Writing: whole rows or none, within bounds, into the right file."""

from __future__ import annotations

import functools
import os
import resource
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smart_caption_ros.caption_log import (
    Bounds,
    CaptionLog,
    CaptionLogError,
    LoggedCaption,
    LoggedNoun,
    LoggedObject,
    LogReader,
    Near,
    Query,
    schema,
)
from smart_caption_ros.caption_log.recording import Recorder
from smart_caption_ros.caption_log.store import MIN_BYTES
from tests.caption_log.rows import START_NS, at, full_row, row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "captions.db"


def rows_of(path: Path) -> list[LoggedCaption]:
    with LogReader(path) as reader:
        return list(reader.all_rows())


def check_integrity(path: Path) -> None:
    """The database, and its search index against the rows."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for index in ("caption_search", "caption_words"):
        connection.execute(f"INSERT INTO {index}({index}) VALUES ('integrity-check')")
    assert connection.execute("SELECT rtreecheck('place')").fetchone() == ("ok",)
    assert (
        connection.execute("SELECT count(*) FROM place").fetchone()
        == connection.execute("SELECT count(*) FROM caption WHERE pose_frame IS NOT NULL").fetchone()
    )
    connection.close()


def test_a_row_comes_back_as_it_was_written(path: Path) -> None:
    with CaptionLog(path) as log:
        number = log.append(full_row())
    assert rows_of(path) == [replace(full_row(), id=number)]
    assert number == START_NS // 10**6


def test_rows_of_one_millisecond_have_ids_of_their_own(path: Path) -> None:
    with CaptionLog(path) as log:
        assert [log.append(row(text)) - START_NS // 10**6 for text in ("a", "b", "c")] == [0, 1, 2]


@pytest.mark.parametrize("stamp_ns", [0, 17 * 10**9, START_NS + 10 * 86_400 * 10**9])
def test_a_stamp_that_is_no_time_of_day_gives_way_to_the_time_of_reception(stamp_ns: int) -> None:
    assert row(stamp_ns=stamp_ns, wall_time_ns=START_NS).time_ns == START_NS


def test_what_a_message_must_not_have_is_made_harmless(path: Path) -> None:
    bad = row("a\x00cup\n\ud800" + "x" * 5000, score=float("nan"), pose=at(float("inf"), 0.0), robot="r" * 500)
    with CaptionLog(path) as log:
        log.append(bad)
        assert log.append(row("a cup", at_s=1)) > 0
    kept = rows_of(path)[0]
    assert kept.text.startswith("a cup  x")
    assert len(kept.text) == 2000
    assert (kept.score, kept.pose, len(kept.robot)) == (None, None, 200)


def test_above_its_size_the_oldest_rows_go_and_the_file_does_not_grow_on(path: Path) -> None:
    with CaptionLog(path, Bounds(max_bytes=MIN_BYTES)) as log:
        for second in range(400):
            log.append(row(f"caption {second}", at_s=second, picture=bytes(8000)))
            if second == 200:
                size = path.stat().st_size
        assert log.used_bytes <= MIN_BYTES
    kept = [caption.text for caption in rows_of(path)]
    assert kept == [f"caption {second}" for second in range(400 - len(kept), 400)]
    assert 50 < len(kept) < 150
    assert path.stat().st_size <= 1.2 * size
    check_integrity(path)
    with LogReader(path) as reader:
        assert not reader.find(Query("caption 3"))
        assert reader.overview().captions == len(kept)


def test_rows_that_are_too_old_go_in_small_batches_and_the_newest_stays(path: Path) -> None:
    with CaptionLog(path) as log:
        log.add(row(f"old {second}", at_s=second - 10**8) for second in range(150))
    with CaptionLog(path, Bounds(max_age_s=3600.0)) as log:
        assert not log.prune()  # one call does not hold up the next caption for long
        left = log.captions
        assert 50 < left < 150
        while not log.prune():
            assert log.captions < left
            left = log.captions
        assert [caption.text for caption in rows_of(path)] == ["old 149"]


def test_a_bound_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(CaptionLogError, match="at least 1048576 bytes, not 10"):
        Bounds(max_bytes=10)


def test_a_full_disk_costs_the_row_and_the_next_one_is_written_when_there_is_room(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with CaptionLog(path) as log:
        log.append(row("first"))
        used = max(file.stat().st_size for file in path.parent.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (used + 20_000, limits[1]))
        try:
            with pytest.raises(CaptionLogError, match="cannot be written: disk I/O error"):
                log.append(row("lost", at_s=1, picture=bytes(500_000)))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        log.append(row("third", at_s=2, picture=bytes(500_000)))
    assert [caption.text for caption in rows_of(path)] == ["first", "third"]
    check_integrity(path)


def test_two_writers_take_turns(path: Path) -> None:
    def write(name: str) -> None:
        with CaptionLog(path) as log:
            for second in range(50):
                log.append(row(f"{name} {second}", at_s=second))

    threads = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(caption.text for caption in rows_of(path)) == sorted(
        f"{n} {s}" for n in ("one", "two") for s in range(50)
    )
    check_integrity(path)


def test_a_log_that_another_writer_creates_while_its_version_is_read_is_accepted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[threading.Thread] = []

    class Interrupted(sqlite3.Connection):
        """Lets another writer create the log between two queries, unless a transaction prevents it."""

        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if sql == "PRAGMA user_version" and not others:
                others.append(threading.Thread(target=lambda: CaptionLog(path).close()))
                others[0].start()
                others[0].join(timeout=0.5)
            return super().execute(sql, *arguments)

    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Interrupted))
    with CaptionLog(path) as log:
        others[0].join()
        log.append(row("first"))
    assert [caption.text for caption in rows_of(path)] == ["first"]


def test_a_writer_that_never_lets_go_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_TIMEOUT_S", 0.05)
    with CaptionLog(path) as log:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CaptionLogError, match="another process has been writing"):
            log.append(row())
        other.close()
        log.append(row())


def test_old_rows_that_cannot_be_deleted_do_not_cost_the_new_one(path: Path) -> None:
    with CaptionLog(path) as log:
        log.add(row(f"old {second}", at_s=second - 10**8) for second in range(3))
    with CaptionLog(path, Bounds(max_age_s=3600.0)) as log:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("CREATE TRIGGER no_deletion BEFORE DELETE ON caption BEGIN SELECT RAISE(ABORT, 'no'); END")
        assert log.append(row("new")) == START_NS // 10**6
        with pytest.raises(CaptionLogError, match="cannot be written: no"):
            log.prune()
        other.execute("DROP TRIGGER no_deletion")
        other.close()
        assert log.prune()
    assert [caption.text for caption in rows_of(path)] == ["new"]


def test_a_damaged_log_is_named_whatever_is_done_with_it(path: Path) -> None:
    with CaptionLog(path) as log:
        log.add(row(f"caption {second}", at_s=second, picture=bytes(3000)) for second in range(200))
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)  # the first page has the header and the names of the tables
    path.write_bytes(content)
    uses: tuple[Any, ...] = (
        lambda log: log.captions,
        lambda log: log.append(row()),
        lambda log: log.add([row()]),
        lambda log: log.prune(),
        lambda log: Recorder(log),
    )
    sentence = r"captions\.db .*database disk image is malformed"
    for use in uses:
        with pytest.raises(CaptionLogError, match=sentence), CaptionLog(path, Bounds(max_age_s=1.0)) as log:
            use(log)
    reads: tuple[Any, ...] = (
        lambda reader: reader.overview(),
        lambda reader: reader.find(Query("cup")),
        lambda reader: list(reader.all_rows()),
    )
    for read in reads:
        with pytest.raises(CaptionLogError, match=sentence), LogReader(path) as reader:
            read(reader)


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("a text that is long enough to be no header of a database" * 20)
    for use in (CaptionLog, LogReader):
        with pytest.raises(CaptionLogError, match="as a caption log: it is not an SQLite database"):
            use(path)


def test_a_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmark (url TEXT)")
    connection.close()
    before = path.read_bytes()
    for use in (CaptionLog, LogReader):
        with pytest.raises(CaptionLogError, match="is an SQLite database of another program"):
            use(path)
    assert path.read_bytes() == before


def test_a_newer_version_is_refused(path: Path) -> None:
    CaptionLog(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for use in (CaptionLog, LogReader):
        with pytest.raises(CaptionLogError, match="has version 99, this program knows versions up to 4: update"):
            use(path)


# A file as version 1 wrote it; `caption_search` has the columns of that version, and no rows in its place.
VERSION_1 = """
CREATE TABLE caption (
    id INTEGER PRIMARY KEY, stamp_ns INTEGER NOT NULL, wall_time_ns INTEGER NOT NULL, robot TEXT NOT NULL,
    camera TEXT NOT NULL, frame_id TEXT NOT NULL, text TEXT NOT NULL, score REAL, status TEXT NOT NULL,
    model TEXT NOT NULL, objects TEXT NOT NULL, nouns TEXT NOT NULL, coverage REAL, pose_frame TEXT,
    x REAL, y REAL, z REAL, qx REAL, qy REAL, qz REAL, qw REAL, things TEXT NOT NULL, tags TEXT NOT NULL
);
CREATE TABLE picture (id INTEGER PRIMARY KEY, jpeg BLOB NOT NULL);
CREATE TABLE origin (
    robot TEXT NOT NULL, camera TEXT NOT NULL, pose_frame TEXT NOT NULL, captions INTEGER NOT NULL,
    PRIMARY KEY (robot, camera, pose_frame)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE caption_search USING fts5(
    text, things, tags, content='caption', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER caption_inserted AFTER INSERT ON caption BEGIN
    INSERT INTO caption_search(rowid, text, things, tags) VALUES (new.id, new.text, new.things, new.tags);
    INSERT INTO origin VALUES (new.robot, new.camera, coalesce(new.pose_frame, ''), 1)
        ON CONFLICT DO UPDATE SET captions = captions + 1;
END;
CREATE TRIGGER caption_deleted AFTER DELETE ON caption BEGIN
    INSERT INTO caption_search(caption_search, rowid, text, things, tags)
        VALUES ('delete', old.id, old.text, old.things, old.tags);
END;
INSERT INTO caption VALUES (
    1790000000000, 1790000000000000000, 1790000000100000000, 'robot1', 'front', 'optical', 'people in a kitchen', -4.25,
    'ok', 'default', '[["cup",0.9,[1.0,2.0,3.5,4.0]]]', '[["person",null]]', 0.5, 'map', 1.5, -2.0, 0.0, 0.0, 0.0, 0.0,
    1.0, 'person cup', 'c1 r2 g1x1yn2'
);
PRAGMA application_id = 0x53434C47;
PRAGMA user_version = 1;
"""


@pytest.fixture
def old_log(path: Path) -> Path:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    return path


def test_a_log_of_version_1_is_lifted_by_the_writer_and_is_found_by_all_that_it_has(old_log: Path) -> None:
    with pytest.raises(CaptionLogError, match="has version 1, this program reads version 4: start the writer once"):
        LogReader(old_log)
    CaptionLog(old_log).close()
    with LogReader(old_log) as reader:
        (kept,) = reader.find(Query("persons cup ki*", camera="front", robot="robot1", near=Near(1.0, -2.0)))
        assert reader.overview().captions == 1
    assert kept == row(
        "people in a kitchen",
        id=START_NS // 10**6,
        frame_id="optical",
        score=-4.25,
        model="default",
        objects=(LoggedObject("cup", 0.9, (1.0, 2.0, 3.5, 4.0)),),
        nouns=(LoggedNoun("person", None),),
        coverage=0.5,
        pose=at(1.5, -2.0),
    )
    check_integrity(old_log)


@pytest.mark.parametrize(
    ("version", "newer"),
    [(2, ("confidence", "calibrated_confidence", "image_width", "image_height")), (3, ("calibrated_confidence",))],
)
def test_an_older_log_is_lifted_and_its_new_columns_are_unknown(
    path: Path, version: int, newer: tuple[str, ...]
) -> None:
    with CaptionLog(path) as log:
        log.append(full_row())
    connection = sqlite3.connect(path)
    for column in newer:
        connection.execute(f"ALTER TABLE caption DROP COLUMN {column}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with CaptionLog(path) as log:
        log.append(full_row(at_s=1.0))
    old, new = rows_of(path)
    unknown = (None, None, None) if version == 2 else (0.75, None, (640, 480))
    assert (old.confidence, old.calibrated_confidence, old.image_size) == unknown
    assert (new.confidence, new.calibrated_confidence, new.image_size) == (0.75, 0.625, (640, 480))
    assert (old.text, old.nouns, old.picture) == (new.text, new.nouns, new.picture)
    check_integrity(path)


def test_a_lift_that_fails_leaves_the_older_version(old_log: Path) -> None:
    connection = sqlite3.connect(old_log)
    connection.execute("CREATE TABLE place (name TEXT)")  # in the way of a table of the new version
    connection.close()
    with pytest.raises(CaptionLogError, match="table place already exists"):
        CaptionLog(old_log)
    connection = sqlite3.connect(old_log)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT tags FROM caption").fetchall() == [("c1 r2 g1x1yn2",)]
    connection.close()


def test_a_missing_log_is_named(path: Path) -> None:
    with pytest.raises(CaptionLogError, match="there is no such log"):
        LogReader(path)
    assert not path.exists()


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptionLogError, match="the folder of the log cannot be created: Not a directory"):
        CaptionLog(tmp_path / "file" / "log" / "captions.db")


def test_a_log_is_read_where_nothing_can_be_written(path: Path) -> None:
    """Shows nothing as root, who may write anywhere."""
    with CaptionLog(path) as log:
        log.append(row())
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert len(rows_of(path)) == 1
    finally:
        path.parent.chmod(0o700)
