"""Files: atomic writing, checksums, the cache folder, and the package's configuration files and message definitions."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGE = "smart_caption_ros"
INTERFACES = "interfaces"
"""Folder of the message definitions in the package that pip installs; setup.py fills it."""
FAST_DDS_PROFILE = "fastdds_shared_memory.xml"
PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
"""The variable read by Jazzy's Fast DDS, which ignores FASTDDS_DEFAULT_PROFILES_FILE."""
UNFINISHED = ".unfinished"
"""Suffix of files that are being written; a killed process leaves such a file behind."""


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` to write to; rename it to ``path`` at the end, or remove it after an exception.

    The yielded path has another suffix than ``path``: pass the format to functions that derive it from the suffix, and
    an open file to ``numpy.save``, which would append ``.npy``.

    Raises:
        OSError: the file cannot be written, for example because its folder is missing; names ``path``.
    """
    # Processes that write the same file at a time have different ids.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException as error:
        with suppress(OSError):  # the first error is raised
            unfinished.unlink()
        _name_file(error, path, unfinished)
        raise


@contextmanager
def folder_replaced_atomically(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder`` to write to; replace ``folder`` with it at the end, or remove it on failure.

    Raises:
        OSError: the folder cannot be written or replaced, for example because another process has just replaced it.
    """
    unfinished, outgoing = (folder.with_name(f"{folder.name}.{os.getpid()}{end}") for end in (UNFINISHED, ".replaced"))
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        yield unfinished
        if folder.exists():
            folder.rename(outgoing)
        unfinished.rename(folder)
    except OSError as error:
        _name_file(error, folder, unfinished)
        raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(outgoing, ignore_errors=True)


def _name_file(error: BaseException, path: Path, unfinished: Path) -> None:
    """Let an error of the system name the file that is being written: that of a full disk names none."""
    if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(unfinished)):
        error.filename = str(path)


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically; see :func:`replaced_atomically`."""
    with replaced_atomically(path) as unfinished:
        unfinished.write_bytes(data)


def write_text_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically; line ends are not converted, and "?" stands for what has no UTF-8 form.

    That is half a surrogate pair, which Python's names of files have for bytes that are not UTF-8.
    """
    write_bytes_atomically(path, text.encode(errors="replace"))


def sha256_of(path: Path) -> str:
    """Compute the sha256 of a file's content, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_bytes(data: bytes) -> str:
    """Compute the sha256 of bytes, 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/smart_caption_ros``, by default in ``~/.cache``; the folder is not created."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification demands that relative paths are ignored.
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "smart_caption_ros"


def config_file(name: str) -> Path:
    """Find a file of the package's `config/` folder, in the checkout or installed.

    Raises:
        FileNotFoundError: the file is not installed; one sentence.
    """
    folders = [*_checkout(), *_shared_folders()]
    for folder in folders:
        if (path := folder / "config" / name).is_file():
            return path
    raise FileNotFoundError(f"config/{name} is not installed: it is not in {' or '.join(map(str, folders))}")


def message_definitions() -> dict[str, Path]:
    """Find the definitions of the package's messages: the name of each message, "Caption", and its .msg file.

    They are in the checkout, in the package (pip) or in the ROS prefix (colcon), and readable without ROS.

    Raises:
        FileNotFoundError: the definitions are not installed; one sentence.
    """
    package = Path(__file__).resolve().parent
    folders = [*(folder / "msg" for folder in _checkout()), package / INTERFACES]
    folders += [folder / "msg" for folder in _shared_folders()]
    for folder in folders:
        if (folder / "Caption.msg").is_file():
            return {path.stem: path for path in sorted(folder.glob("*.msg"))}
    raise FileNotFoundError(
        f"the definitions of the package's messages are not installed: they are not in {' or '.join(map(str, folders))}"
    )


def _checkout() -> list[Path]:
    """Return the folder of the checkout, if this file is in one."""
    folder = Path(__file__).resolve().parents[1]
    return [folder] if (folder / "package.xml").is_file() else []


def _shared_folders() -> list[Path]:
    """Return the folders where ROS installs the package's files."""
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    return [Path(prefix, "share", PACKAGE) for prefix in prefixes]
