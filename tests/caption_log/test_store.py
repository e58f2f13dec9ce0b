"""Writing: whole rows or none, within bounds, into the right file."""

import functools
import json
import os
import resource
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from smart_caption_ros.caption_log import Bounds, CaptionLog, CaptionLogError, LogReader, Query, schema, store
from smart_caption_ros.caption_log.recording import Recorder
from smart_caption_ros.caption_log.store import MIN_BYTES
from tests.caption_log.rows import JPEG, START_MS, START_NS, at, caption, check_integrity, full, rows_of, texts_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "captions.db"


def test_a_caption_comes_back_as_it_was_written(path):
    with CaptionLog(path) as log:
        number = log.append(full(), JPEG)
    (row,) = rows_of(path)
    assert (row.id, row.time_ns, row.picture) == (START_MS, START_NS, JPEG)
    assert number == START_MS
    assert row.values == json.loads(json.dumps(full().to_json()))
    again = row.record()
    assert replace(again, received_monotonic_s=0.0) == replace(full(), received_monotonic_s=0.0)
    assert again.image.jpeg() == JPEG


def test_what_a_message_must_not_have_is_made_harmless(path):
    bad = caption("a\x00cup\n\ud800" + "x" * 5000, pose=at(float("inf"), 0.0), robot="r" * 500, stamp_ns=-5)
    bad = replace(bad, caption=replace(bad.caption, score=float("nan")))
    many = caption(" ".join(["word"] * 300), 1, objects=["cup"] * 300, nouns=[("word", "word")])
    nouns = tuple(replace(noun, object_index=299) for noun in many.grounding.nouns) if many.grounding else ()
    with CaptionLog(path) as log:
        log.add([bad, replace(many, grounding=replace(many.grounding, nouns=nouns))])
    kept, long = rows_of(path)
    assert kept.text.startswith("a cup  x")
    assert len(kept.text) == 2000
    assert (kept.values["score"], kept.pose, len(kept.robot)) == (None, None, 200)
    assert (len(long.values["words"]), long.classes["cup"], long.values["nouns"][0]["object_index"]) == (256, 256, None)
    assert long.record().caption.text.startswith("word")


def test_above_its_size_the_first_rows_go_and_the_file_does_not_grow_on(path):
    with CaptionLog(path, Bounds(max_bytes=MIN_BYTES)) as log:
        for second in range(200):
            log.append(caption(f"caption {second}", second), bytes(16_000))
            if second == 100:
                size = path.stat().st_size
        assert log.used_bytes <= MIN_BYTES
    kept = texts_of(path)
    assert kept == [f"caption {second}" for second in range(200 - len(kept), 200)]
    assert 25 < len(kept) < 75
    assert path.stat().st_size <= 1.2 * size
    check_integrity(path)
    with LogReader(path) as reader:
        assert not reader.find(Query("caption 3"))
        assert reader.overview().captions == len(kept)


def test_a_replayed_recording_of_old_stamps_is_kept_and_what_was_written_before_it_goes(path):
    with CaptionLog(path, Bounds(max_bytes=MIN_BYTES, max_age_s=3600)) as log:
        for second in range(70):
            log.append(caption(f"today {second}", second), bytes(16_000))
        for second in range(20):
            log.append(caption(f"replayed {second}", second - 10**8), bytes(16_000))
    kept = texts_of(path)
    assert [text for text in kept if text.startswith("replayed")] == [f"replayed {second}" for second in range(20)]
    assert kept[-1] == "today 69"
    assert "today 0" not in kept


def test_rows_that_were_written_long_ago_go_in_small_batches_and_the_newest_stays(path, monkeypatch):
    now_s = time.time()
    with CaptionLog(path) as log, monkeypatch.context() as patched:
        patched.setattr(store.time, "time", lambda: now_s - 7200)
        log.add([*(caption(f"old {second}", second) for second in range(100))])
    with CaptionLog(path, Bounds(max_age_s=3600.0)) as log:
        assert not log.prune()  # one call does not hold up the next caption for long
        assert 20 < log.captions < 100
        while not log.prune():
            pass
        assert texts_of(path) == ["old 99"]


def test_a_full_disk_costs_the_row_and_the_next_one_is_written_when_there_is_room(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with CaptionLog(path) as log:
        log.append(caption("first"))
        used = max(file.stat().st_size for file in path.parent.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (used + 20_000, limits[1]))
        try:
            with pytest.raises(CaptionLogError, match="cannot be written: disk I/O error"):
                log.append(caption("lost", 1), bytes(500_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        log.append(caption("third", 2), bytes(500_000))
    assert texts_of(path) == ["first", "third"]
    check_integrity(path)


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_log_that_is_moved_or_deleted_goes_on_in_a_new_file(path, is_moved):
    with CaptionLog(path) as log:
        log.append(caption("first"))
        if is_moved:
            path.rename(path.with_name("old.db"))
        else:
            path.unlink()
        log.append(caption("second", 1))
        log.append(caption("third", 2))
        assert log.new_files == 1
    assert texts_of(path) == ["second", "third"]
    if is_moved:
        assert texts_of(path.with_name("old.db")) == ["first"]


def test_two_writers_take_turns(path):
    def write_with(name):
        with CaptionLog(path) as log:
            for second in range(20):
                log.append(caption(f"{name} {second}", second))

    threads = [threading.Thread(target=write_with, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts_of(path)) == sorted(f"{name} {second}" for name in ("one", "two") for second in range(20))
    check_integrity(path)


def test_a_writer_that_never_lets_go_is_named(path, monkeypatch):
    monkeypatch.setattr(schema, "BUSY_TIMEOUT_S", 0.05)
    with CaptionLog(path) as log:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CaptionLogError, match="another process has been writing"):
            log.append(caption())
        other.close()
        log.append(caption())


def test_a_damaged_log_is_named_whatever_is_done_with_it(path):
    with CaptionLog(path) as log:
        for second in range(50):
            log.append(caption(f"caption {second}", second), bytes(12_000))
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)  # the first page has the header and the names of the tables
    path.write_bytes(content)
    uses = (
        lambda log: log.captions,
        lambda log: log.append(caption()),
        lambda log: log.prune(),
        lambda log: Recorder(log),
    )
    sentence = r"captions\.db .*(database disk image is malformed|vtable constructor failed)"
    for use in uses:
        with pytest.raises(CaptionLogError, match=sentence), CaptionLog(path, Bounds(max_age_s=1.0)) as log:
            use(log)
    reads = (
        lambda reader: reader.overview(),
        lambda reader: reader.find(Query("cup")),
        lambda reader: list(reader.all_rows()),
    )
    for read in reads:
        with pytest.raises(CaptionLogError, match=sentence), LogReader(path) as reader:
            read(reader)


def make_text(path):
    path.write_text("a text that is long enough to be no header of a database" * 20)


def make_bookmarks(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmark (url TEXT)")
    connection.close()


def make_version(path, version):
    CaptionLog(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (make_text, "as a caption log: it is not an SQLite database"),
        (make_bookmarks, "is an SQLite database of another program"),
        (
            functools.partial(make_version, version=4),
            "has version 4 and this program knows 5: read it with",
        ),
        (functools.partial(make_version, version=99), "has version 99 and this program knows 5"),
    ],
)
def test_another_file_is_refused_and_left_alone(path, make, sentence):
    path.parent.mkdir()
    make(path)
    before = path.read_bytes()
    for use in (CaptionLog, LogReader):
        with pytest.raises(CaptionLogError, match=sentence):
            use(path)
    assert path.read_bytes() == before


def test_what_is_not_there_to_read_and_what_is_no_file_is_no_log(path, tmp_path):
    with pytest.raises(CaptionLogError, match="there is no such log"):
        LogReader(path)
    assert not path.exists()
    os.mkfifo(tmp_path / "pipe")
    for use in (CaptionLog, LogReader):
        for other in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
            with pytest.raises(CaptionLogError, match="is not a caption log: it is not a file"):
                use(other)
    (tmp_path / "file").touch()
    with pytest.raises(CaptionLogError, match="the folder of the log cannot be created: Not a directory"):
        CaptionLog(tmp_path / "file" / "log" / "captions.db")


@pytest.mark.parametrize("name", ["file:y.db", ":memory:", "file:z.db?mode=ro"])
def test_a_name_that_sqlite_reads_in_its_own_way_is_that_of_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with CaptionLog(Path(name)) as log:
        log.append(caption("a cup"))
    assert (tmp_path / name).is_file()
    assert texts_of(Path(name)) == ["a cup"]
