"""Files: written whole or not at all, checksums, the cache folder, and where the package's own files are."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGE = "smart_caption_ros"
FAST_DDS_PROFILE = "fastdds_shared_memory.xml"
PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
"""The variable that the Fast DDS of Jazzy reads; it ignores FASTDDS_DEFAULT_PROFILES_FILE."""
UNFINISHED = ".unfinished"
"""How the names end under which files are written; a process that is killed leaves such a file behind."""


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to. It becomes ``path`` when the block ends well and is removed when it does not.

    The name does not end as ``path`` does: what goes by the ending of a name has to be told the format. Hand
    ``numpy.save`` an open file, for it adds ``.npy`` to such a name.

    Raises:
        OSError: the file cannot be written, its folder is missing, say; names ``path``.
    """
    # Another process that writes the same file has another number.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException as error:
        with suppress(OSError):  # what went wrong first is what is told
            unfinished.unlink()
        if isinstance(error, OSError) and error.filename == str(unfinished):
            error.filename = str(path)
        raise


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write a file as :func:`replaced_atomically` does."""
    with replaced_atomically(path) as unfinished:
        unfinished.write_bytes(data)


def write_text_atomically(path: Path, text: str) -> None:
    """Write a file of UTF-8 as :func:`replaced_atomically` does; line ends stay as they are."""
    write_bytes_atomically(path, text.encode())


def sha256_of(path: Path) -> str:
    """Hexadecimal sha256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/smart_caption_ros``, by default in ``~/.cache``. The folder is not created."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says that relative paths are to be ignored.
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "smart_caption_ros"


def config_file(name: str) -> Path:
    """The path of a file that the package ships in `config/`.

    Raises:
        FileNotFoundError: it is nowhere; one sentence.
    """
    checkout = Path(__file__).resolve().parents[1]
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    folders = [checkout] if (checkout / "package.xml").is_file() else []
    folders += [Path(prefix, "share", PACKAGE) for prefix in prefixes]
    for folder in folders:
        if (path := folder / "config" / name).is_file():
            return path
    raise FileNotFoundError(f"config/{name} is not installed: it is not in {' or '.join(map(str, folders))}")
