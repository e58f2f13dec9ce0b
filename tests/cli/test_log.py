"""`smart-caption log`: record a source, find, export and import, and one sentence for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import Result

from smart_caption_ros.caption_log import CaptionLog, LoggedObject
from smart_caption_ros.live import EventKind, FeedEvent
from smart_caption_ros.record import CaptionStatus
from tests.caption_log.rows import at, row
from tests.caption_log.test_recording import live

Run = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "captions.db"
    picture = cv2.imencode(".jpg", np.full((4, 4, 3), 90, np.uint8))[1].tobytes()
    with CaptionLog(path) as opened:
        opened.append(row("a red cup on a table", pose=at(1.0, 2.0), picture=picture))
        opened.append(row("two dogs <b>", at_s=3600, camera="rear"))
    return path


def test_find_answers_where_and_when_and_writes_pictures_and_a_page(run: Run, log: Path, tmp_path: Path) -> None:
    page, pictures = tmp_path / "found.html", tmp_path / "pictures"
    result = run("log", "find", "cups", "--log", log, "--near", "1,2.5", "--pictures", pictures, "--html", page)
    assert result.exit_code == 0, result.output
    first, second, third, last = result.stdout.splitlines()
    assert first == "a red cup on a table"
    assert second.endswith("front of robot1  map 1.00, 2.00, 0.00")
    assert Path(third.strip()).read_bytes().startswith(b"\xff\xd8\xff")
    assert last == f"1 caption on {page}"
    text = page.read_text()
    assert "data:image/jpeg;base64,/9j/" in text
    assert "http" not in text


def test_what_a_caption_says_is_no_html(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "found.html"
    run("log", "find", "<b>", "--log", log, "--html", page)
    run("log", "find", "dogs", "--log", log, "--html", page)
    assert "two <mark>dogs</mark> &lt;b&gt;" in page.read_text()
    assert "<b>" not in page.read_text()


def test_control_characters_of_messages_do_not_reach_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smart_caption_ros.cli import log as command
    from smart_caption_ros.live import CaptionFeed

    path, hostile = tmp_path / "captions.db", "\x1b]0;title\x07"
    with CaptionLog(path) as opened:
        opened.append(row(f"a cup{hostile}", camera=f"front{hostile}", pose=at(1.0, 2.0)))
    feed = CaptionFeed()
    feed.add_event(FeedEvent(EventKind.ERROR, f"no image{hostile}"))
    feed.close()
    monkeypatch.setattr(command, "open_feed", lambda *arguments, **settings: feed)
    results = [run("log", *arguments, "--log", path) for arguments in (("find",), ("info",), ("record",))]
    assert [result.exit_code for result in results] == [0, 0, 0]
    output = "".join(part for result in results for part in (result.stdout, result.stderr))
    assert "no image\\x1b]0;title\\x07" in output
    assert "\x1b" not in output


def test_find_as_json(run: Run, log: Path) -> None:
    result = run("log", "find", "--log", log, "--json", "--limit", "1", "--until", "2100-01-01", "--camera", "front")
    (found,) = json.loads(result.stdout)
    assert (found["text"], found["pose"]["position"], found["picture"]) == ("a red cup on a table", [1, 2, 0], None)


def test_files_may_have_names_that_are_not_utf_8(run: Run, log: Path, tmp_path: Path) -> None:
    other, csv, page, folder = (tmp_path / f"\udce9{name}" for name in ("a.db", "b.csv", "c.html", "d"))
    commands = [
        ("export", csv, "--pictures", folder, "--log", log),
        ("import", csv, "--log", other),
        ("find", "--log", other, "--camera", "\udce9"),
        ("find", "cup", "--log", other, "--html", page, "--pictures", folder),
        ("find", "--log", other, "--json", "--pictures", folder),
        ("info", "--log", other),
        ("info", "--log", other, "--json"),
    ]
    results = [run("log", *arguments) for arguments in commands]
    assert [result.exit_code for result in results] == [0] * len(commands), results[-1].output
    assert "a red cup on a table" in page.read_text()
    assert len(list(folder.iterdir())) == 1


def test_objects_that_the_text_does_not_name_are_shown(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "found.html"
    with CaptionLog(log) as opened:
        objects = [LoggedObject(name, 0.5, (0.0, 0.0, 1.0, 1.0)) for name in ("wine glass", "chair", "chair")]
        opened.append(row("a room", at_s=7200, objects=tuple(objects)))
    result = run("log", "find", "wine", "--log", log, "--html", page)
    assert result.stdout.splitlines()[:3:2] == ["a room", "  objects: wine glass, 2 chair"]
    assert "<mark>wine glass</mark>, 2 chair" in page.read_text()


def test_a_word_with_a_dash_is_a_word_and_a_misspelt_option_is_none(run: Run, log: Path) -> None:
    assert "a red cup on a table" in run("log", "find", "-cup", "--log", log).stdout
    result = run("log", "find", "cup", "--sinse", "2h", "--log", log)
    assert result.exit_code == 2
    assert "No such option: --sinse" in result.stderr


def test_a_source_that_is_not_there_leaves_no_database(run: Run, tmp_path: Path) -> None:
    result = run("log", "record", "--source", tmp_path / "missing.mp4", "--log", tmp_path / "new" / "log.db")
    assert result.exit_code == 1
    assert result.stderr == f"smart-caption: there is no file or folder {tmp_path / 'missing.mp4'}\n"
    assert not (tmp_path / "new").exists()


def test_a_failed_import_leaves_no_database(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    result = run("log", "import", tmp_path / "a.csv", "--log", tmp_path / "new" / "log.db")
    assert result.exit_code == 1
    assert not (tmp_path / "new").exists()


def test_nothing_found_is_no_error(run: Run, log: Path) -> None:
    result = run("log", "find", "elephant", "--log", log)
    assert (result.exit_code, result.stdout) == (0, "nothing found\n")


def test_info(run: Run, log: Path) -> None:
    assert "1  front of robot1, poses in map" in run("log", "info", "--log", log).stdout
    facts = json.loads(run("log", "info", "--log", log, "--json").stdout)
    assert (facts["captions"], facts["version"], len(facts["origins"])) == (2, 4, 2)


def test_export_and_import(run: Run, log: Path, tmp_path: Path) -> None:
    one, two, copy = tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "copy.db"
    assert run("log", "export", one, "--log", log).stdout == f"2 captions in {one}\n"
    assert run("log", "import", one, "--log", copy).stdout == f"2 captions written to {copy}, 0 were there already\n"
    run("log", "export", two, "--log", copy)
    assert one.read_bytes() == two.read_bytes()


def test_a_source_is_recorded(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert "front of r2" in run("log", "info", "--log", tmp_path / "new" / "captions.db").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("find", "--since", "soon"), "'soon' is not a time"),
        (("find", "--order", "oldest"), "the order is one of newest, best"),
        (("find", "--near", "1;2"), "is not a place: write x,y or x,y,z"),
        (("find", "--near", "1,2", "--radius", "-1"), "must be a positive number"),
        (("find", "???"), "there is no word in the search"),
        (("find", "--html", "missing/page.html"), "There is no folder missing"),
        (("import", "missing.csv"), "No such file: missing.csv"),
        (("export", "missing/log.csv"), "There is no folder missing"),
        (("record", "--source", "missing.mp4"), "missing.mp4"),
        (("record", "--max-size", "0.5"), "at least 1048576 bytes"),
    ],
)
def test_bad_input_gets_a_sentence(run: Run, log: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = run("log", *arguments, "--log", log)
    assert result.exit_code in (1, 2)
    assert sentence in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
