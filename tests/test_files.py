"""Files are written whole or not at all, also after errors and kills; inputs and devices are never replaced."""

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from smart_caption_ros.files import (
    UNFINISHED,
    OutputError,
    check_outputs_in,
    folder_replaced_atomically,
    replaced_atomically,
    write_bytes_atomically,
    write_text_atomically,
)


def fail_at(path, failure):
    with replaced_atomically(path) as unfinished:
        unfinished.write_bytes(b"half of the n")
        raise failure


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_file_has_its_new_content_when_the_block_has_ended_and_not_before(tmp_path, before):
    path = tmp_path / "picture.png"
    if before is not None:
        path.write_bytes(before)
    with replaced_atomically(path) as unfinished:
        assert (unfinished.parent, unfinished.suffix) == (tmp_path, UNFINISHED)
        unfinished.write_bytes(b"new")
        assert (path.read_bytes() if path.exists() else None) == before
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_a_failure_keeps_the_old_file_and_leaves_nothing_else(tmp_path, failure):
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    with pytest.raises(type(failure)) as raised:
        fail_at(path, failure)
    assert raised.value is failure
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def link_to_full(path):
    path.symlink_to("/dev/full")


@pytest.mark.parametrize("make", [Path.mkdir, make_fifo, make_socket, link_to_full])
def test_what_is_no_file_is_refused_and_stays(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    path = Path("output")
    make(path)
    before = path.lstat()
    with pytest.raises(OutputError, match=r"output is (a folder|a device, pipe or socket), not a file"):
        write_bytes_atomically(path, b"new")
    assert path.lstat() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "output"]


def test_the_target_of_a_link_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "far").mkdir()
    link, target = tmp_path / "link", tmp_path / "far" / "target"
    link.symlink_to("far/target")
    for content in (b"first", b"second"):  # the first time, the link leads to no file
        write_bytes_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    folder_link = tmp_path / "folder_link"
    folder_link.symlink_to("far")
    with folder_replaced_atomically(folder_link) as unfinished:
        (unfinished / "new").touch()
    assert folder_link.is_symlink()
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["new"]


def test_pictures_in_a_folder_replace_no_input_and_links_to_nothing_are_passed_over(tmp_path):
    (tmp_path / "broken.png").symlink_to("nothing")
    (tmp_path / "photo.jpg").touch()
    check_outputs_in(tmp_path, "*.png", [tmp_path / "photo.jpg"])
    (tmp_path / "photo.png").symlink_to("photo.jpg")
    with pytest.raises(OutputError, match=r"photo\.png would be replaced, and is an input, .*photo\.jpg"):
        check_outputs_in(tmp_path, "*.png", [tmp_path / "photo.jpg"])


def test_a_folder_with_an_input_is_not_replaced(tmp_path):
    source = tmp_path / "bundle" / "weights"
    source.parent.mkdir()
    source.write_bytes(b"weights")
    for read in (source, source.parent):
        with pytest.raises(OutputError, match="holds an input"), folder_replaced_atomically(tmp_path, [read]):
            pass
    with pytest.raises(OutputError, match="is not a folder"), folder_replaced_atomically(source):
        pass
    assert source.read_bytes() == b"weights"


@pytest.mark.parametrize("redirected", [False, True])
def test_standard_output_is_written_through(tmp_path, redirected):
    script = (
        "import sys; from pathlib import Path; from smart_caption_ros.files import write_text_atomically as write\n"
        "for name in sys.argv[1:]: write(Path(name), 'text\\n')"
    )
    log = tmp_path / "log"
    log.write_text("before\n")
    command = [sys.executable, "-c", script, "/dev/stdout", "/dev/fd/1", "/dev/null"]
    with log.open("a") as stream:
        done = subprocess.run(command, check=True, stdout=stream if redirected else subprocess.PIPE, text=True)
    assert log.read_text() == ("before\ntext\ntext\n" if redirected else "before\n")
    assert redirected or done.stdout == "text\ntext\n"
    assert Path("/dev/stdout").is_symlink()
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_is_an_error_with_the_name_of_the_file(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            write_bytes_atomically(tmp_path / "report.json", bytes(2000))
        with (
            pytest.raises(OSError, match="File too large") as in_folder,
            folder_replaced_atomically(tmp_path / "a") as a,
        ):
            (a / "inner").write_bytes(bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.filename == str(tmp_path / "report.json")
    assert in_folder.value.filename == str(tmp_path / "a")
    assert not list(tmp_path.iterdir())


WRITER = """
import sys
from collections.abc import Callable
from pathlib import Path
from smart_caption_ros.files import replaced_atomically
with replaced_atomically(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    print("begun", flush=True)
    input()
    unfinished.write_text("of the other process")
"""


def test_two_processes_that_write_one_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "report.json"
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "begun\n"
        with pytest.raises(ValueError, match="no"):
            fail_at(path, ValueError("no"))
        write_text_atomically(path, "of this process")
        assert path.read_text() == "of this process"
        other.communicate("\n")
    assert other.returncode == 0
    assert path.read_text() == "of the other process"
    assert list(tmp_path.iterdir()) == [path]


def interrupt_in_folder(folder):
    with folder_replaced_atomically(folder) as unfinished:
        (unfinished / "file").write_text("newer")
        raise KeyboardInterrupt


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "bundle"
    for content in ("old", "new"):
        with folder_replaced_atomically(folder) as unfinished:
            (unfinished / "file").write_text(content)
        assert (folder / "file").read_text() == content
        assert list(tmp_path.iterdir()) == [folder]
    with pytest.raises(KeyboardInterrupt):
        interrupt_in_folder(folder)
    assert (folder / "file").read_text() == "new"
    assert list(tmp_path.iterdir()) == [folder]
