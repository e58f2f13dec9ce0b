"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = ".unfinished"
"""How the names end under which files are written; a process that is killed leaves such a file behind."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
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


def write_bytes_whole(path: Path, data: bytes) -> None:
    """Write a file as :func:`written_whole` does."""
    with written_whole(path) as unfinished:
        unfinished.write_bytes(data)


def write_text_whole(path: Path, text: str) -> None:
    """Write a file of UTF-8 as :func:`written_whole` does; line ends stay as they are."""
    write_bytes_whole(path, text.encode())
