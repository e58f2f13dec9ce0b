"""`smart-caption log`: record a source, find, export and import, and one sentence for what is wrong."""

import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from smart_caption_ros.caption_log import CaptionLog
from smart_caption_ros.live import EventKind, FeedEvent
from smart_caption_ros.record import CaptionStatus
from tests.caption_log.rows import at, caption
from tests.caption_log.test_recording import live


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "captions.db"
    picture = cv2.imencode(".jpg", np.full((4, 4, 3), 90, np.uint8))[1].tobytes()
    with CaptionLog(path) as opened:
        opened.append(caption("a red cup on a table", pose=at(1.0, 2.0)), picture)
        opened.append(caption("two dogs", 3600, camera="rear", objects=["wine glass", "chair", "chair"]))
    return path


def test_find_answers_where_and_when_and_writes_pictures(run, log, tmp_path):
    result = run("log", "find", "cups", "--log", log, "--near", "1,2.5", "--pictures", tmp_path / "pictures")
    assert result.exit_code == 0, result.output
    first, second, third = result.stdout.splitlines()
    assert first == "a red cup on a table"
    assert second.endswith("front of robot1  map 1.00, 2.00, 0.00")
    assert Path(third.strip()).read_bytes().startswith(b"\xff\xd8\xff")
    assert run("log", "find", "wine", "--log", log).stdout.splitlines()[2] == "  objects: wine glass, 2 chair"


def test_control_characters_of_messages_do_not_reach_the_terminal(run, tmp_path, monkeypatch):
    from smart_caption_ros.cli import log as command
    from smart_caption_ros.live import CaptionFeed

    path, hostile = tmp_path / "captions.db", "\x1b]0;title\x07"
    with CaptionLog(path) as opened:
        opened.append(caption(f"a cup{hostile}", camera=f"front{hostile}", pose=at(1.0, 2.0)))
    feed = CaptionFeed()
    feed.add_event(FeedEvent(EventKind.ERROR, f"no image{hostile}"))
    feed.close()
    monkeypatch.setattr(command, "open_feed", lambda *arguments, **settings: feed)
    results = [run("log", *arguments, "--log", path) for arguments in (("find",), ("find", "--count"), ("record",))]
    assert [result.exit_code for result in results] == [0, 0, 0]
    output = "".join(part for result in results for part in (result.stdout, result.stderr))
    assert "no image\\x1b]0;title\\x07" in output
    assert "\x1b" not in output


def test_files_may_have_names_that_are_not_utf_8(run, log, tmp_path):
    other, csv, folder = (tmp_path / f"\udce9{name}" for name in ("a.db", "b.csv", "d"))
    other.write_bytes(log.read_bytes())
    commands = [
        ("export", csv, "--pictures", folder),
        ("find", "--camera", "\udce9"),
        ("find", "cup", "--pictures", folder),
        ("find", "--json", "--pictures", folder),
        ("find", "--count"),
        ("find", "--count", "--json"),
    ]
    results = [run("log", *arguments, "--log", other) for arguments in commands]
    assert [result.exit_code for result in results] == [0] * len(commands), results[-1].output
    assert len(list(folder.iterdir())) == 1
    assert not re.search(r"\\ud[89a-f]", results[3].stdout.replace("\\\\", "")), "half of a surrogate pair"


def test_a_word_with_a_dash_is_a_word_and_a_misspelt_option_is_none(run, log):
    assert "a red cup on a table" in run("log", "find", "-cup", "--log", log).stdout
    result = run("log", "find", "cup", "--sinse", "2h", "--log", log)
    assert result.exit_code == 2
    assert "No such option: --sinse" in result.stderr


def test_a_source_that_is_not_there_leaves_no_database(run, tmp_path):
    result = run("log", "record", "--source", tmp_path / "missing.mp4", "--log", tmp_path / "new" / "log.db")
    assert result.exit_code == 1
    assert result.stderr == f"smart-caption: there is no file or folder {tmp_path / 'missing.mp4'}\n"
    assert not (tmp_path / "new").exists()


def test_find_counts_all_that_match(run, log):
    assert "1  front of robot1, poses in map" in run("log", "find", "--count", "--log", log).stdout
    facts = json.loads(run("log", "find", "--count", "--limit", "1", "--log", log, "--json").stdout)
    assert (facts["captions"], len(facts["origins"])) == (2, 2)
    assert "1 caption in " in run("log", "find", "dog", "--count", "--log", log).stdout


def test_export_writes_a_table(run, log, tmp_path):
    table = tmp_path / "log.csv"
    assert run("log", "export", table, "--log", log).stdout == f"2 captions in {table}\n"


def test_a_source_is_recorded(run, tmp_path, monkeypatch):
    from smart_caption_ros.cli import log as command
    from smart_caption_ros.live import CaptionFeed

    feed = CaptionFeed()
    feed.add(live("a cup", "cup"))
    feed.add(live("the cup", "cup"))
    feed.add(live("", status=CaptionStatus.NOTHING_FOUND))
    feed.close()
    monkeypatch.setattr(command, "open_feed", lambda *arguments, **settings: feed)
    result = run("log", "record", "--source", "x.png", "--log", tmp_path / "new" / "captions.db", "--robot", "r2")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == (
        "1 caption written; 1 said the same as one shortly before, 1 image had none; 1 in the log"
    )
    assert "front of r2" in run("log", "find", "--log", tmp_path / "new" / "captions.db").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("find", "--since", "soon"), "'soon' is not a time"),
        (("find", "--order", "oldest"), "the order is one of newest, best"),
        (("find", "--near", "1;2"), "is not a place: write x,y or x,y,z"),
        (("find", "--near", "1,2", "--radius", "-1"), "must be a positive number"),
        (("find", "--near", "1,nan"), "must be finite numbers"),
        (("find", "--limit", "0"), "limit"),
        (("find", "???"), "there is no word in the search"),
        (("export", "missing/log.csv"), "There is no folder missing"),
        (("record", "--source", "missing.mp4"), "missing.mp4"),
        (("record", "--max-size", "0.5"), "at least 1000000 bytes"),
        (("record", "--max-size", "inf"), "--max-size"),
        (("record", "--max-age", "inf"), "--max-age"),
    ],
)
def test_bad_input_gets_a_sentence(run, log, arguments, sentence):
    result = run("log", *arguments, "--log", log)
    assert result.exit_code in (1, 2)
    assert sentence in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
