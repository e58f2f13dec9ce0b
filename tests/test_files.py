"""Files are written whole or not at all, also after errors and kills."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from smart_caption_ros.files import (
    UNFINISHED,
    folder_replaced_atomically,
    replaced_atomically,
    write_bytes_atomically,
    write_text_atomically,
)


def fail_at(path: Path, failure: BaseException) -> None:
    with replaced_atomically(path) as unfinished:
        unfinished.write_bytes(b"half of the n")
        raise failure


def test_a_file_is_there_when_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    with replaced_atomically(path) as unfinished:
        unfinished.write_bytes(b"half")
        assert not path.exists()
        unfinished.write_bytes(b"whole")
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_keeps_its_content_until_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    with replaced_atomically(path) as unfinished:
        unfinished.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_the_unfinished_file_is_in_the_same_folder_with_another_suffix(tmp_path: Path) -> None:
    with replaced_atomically(tmp_path / "picture.png") as unfinished:
        assert unfinished.parent == tmp_path
        assert unfinished.suffix == UNFINISHED
        unfinished.touch()


@pytest.mark.parametrize("failure", [ValueError("no"), OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path, failure: BaseException) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    with pytest.raises(type(failure)) as raised:
        fail_at(path, failure)
    assert raised.value is failure
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_before_anything_is_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), replaced_atomically(tmp_path / "report.json"):
        raise ValueError("no")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_renamed_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a folder"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_bytes_atomically(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "report.json"
    with pytest.raises(FileNotFoundError) as raised:
        write_bytes_atomically(path, b"new")
    assert raised.value.filename == str(path)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_error_with_the_name_of_the_file(tmp_path: Path) -> None:
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


def test_an_error_of_another_file_keeps_its_name(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with pytest.raises(FileNotFoundError) as raised, replaced_atomically(tmp_path / "copy") as unfinished:
        unfinished.write_bytes(source.read_bytes())
    assert raised.value.filename == str(source)


WRITER = """
import sys
from pathlib import Path
from smart_caption_ros.files import replaced_atomically
with replaced_atomically(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    print("begun", flush=True)
    input()
    unfinished.write_text("of the other process")
"""


def test_two_processes_that_write_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        with pytest.raises(ValueError, match="no"):
            fail_at(path, ValueError("no"))
        write_text_atomically(path, "of this process")
        assert path.read_text() == "of this process"
        other.communicate("\n")
    assert other.returncode == 0
    assert path.read_text() == "of the other process"
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_is_written_as_utf8_with_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "captions.txt"
    write_text_atomically(path, "un café\r\nein Hund ✓\n")
    assert path.read_bytes() == "un café\r\nein Hund ✓\n".encode()


def test_importing_files_loads_only_the_standard_library() -> None:
    loaded = (
        "import sys; before = set(sys.modules); import smart_caption_ros.files\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['smart_caption_ros']\n"


def fail_in_folder(folder: Path, failure: BaseException) -> None:
    with folder_replaced_atomically(folder) as unfinished:
        (unfinished / "file").write_text("new")
        raise failure


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    for content in ("old", "new"):
        with folder_replaced_atomically(folder) as unfinished:
            (unfinished / "file").write_text(content)
        assert (folder / "file").read_text() == content
        assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path, failure: BaseException) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "file").write_text("old")
    with pytest.raises(type(failure)):
        fail_in_folder(folder, failure)
    assert (folder / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]
