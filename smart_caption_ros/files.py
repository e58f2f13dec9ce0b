"""Write files atomically, compute checksums, and find the cache folder, configuration files and message definitions.

Every output is written under another name and then renamed; an input, a folder, a pipe or a device is never replaced.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from smart_caption_ros.errors import ExpectedError

PACKAGE = "smart_caption_ros"
FAST_DDS_PROFILE = "fastdds_shared_memory.xml"
PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
"""Environment variable that Fast DDS of Jazzy reads; it ignores FASTDDS_DEFAULT_PROFILES_FILE."""
UNFINISHED = ".unfinished"
"""Suffix of files that are being written; a killed process leaves such files behind."""
_LONGEST_NAME = 240  # bytes, of 255 on Linux; a bag's temporary folder has more behind it
_STREAMS = ("/dev/null", "/dev/stdout", "/dev/stderr")


class OutputError(ExpectedError, OSError):
    """The output is an input, a folder, a pipe or a device, and must not be replaced. Commands exit with status 2."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.strerror = sentence  # for code that reports any OSError


def check_output(path: Path, inputs: Iterable[Path] = ()) -> Path:
    """Check that an output file may be written; commands call this before they begin to work.

    Args:
        path: the output. It may be a regular file, a new name, or a symbolic link to one of these, which stays a link
            and whose target is written; or /dev/null, /dev/stdout, /dev/stderr and /dev/fd/N, which are written to.
        inputs: files that are read. They are compared by inode, so that links are recognised; files that do not exist
            are ignored.

    Returns:
        The file that is written: ``path`` with its links resolved.

    Raises:
        OutputError: the path is an input, a folder, a pipe or a device.
        OSError: the path cannot be resolved, for example because its links form a circle.
    """
    if _is_stream(path):
        return path
    try:
        found = path.stat()
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, pipe or socket"
        raise OutputError(f"{path} is {kind}, not a file: name another output")
    for read in inputs:
        if inode_of(read) == (found.st_dev, found.st_ino):
            raise OutputError(f"{path} is also an input, {read}: name another output")
    return Path(os.path.realpath(path))


def check_outputs_in(folder: Path, pattern: str, inputs: Iterable[Path]) -> None:
    """Raise OutputError if one of the files in a folder that will be replaced is an input."""
    outputs = {inode_of(path): path for path in folder.glob(pattern)}
    outputs.pop(None, None)  # links to nothing
    for read in inputs if outputs else ():
        if output := outputs.get(inode_of(read)):
            raise OutputError(f"{output} would be replaced, and is an input, {read}: name another output")


def check_output_folder(folder: Path, inputs: Iterable[Path] = ()) -> Path:
    """Check that a folder may be replaced as a whole.

    Args:
        folder: a folder, a new name, or a symbolic link to one, whose target is replaced.
        inputs: files and folders that are read; those that do not exist are ignored.

    Returns:
        The folder that is replaced: ``folder`` with its links resolved.

    Raises:
        OutputError: the path exists and is not a folder, or an input is this folder or lies in it.
    """
    target = Path(os.path.realpath(folder))
    if target.exists():
        if not target.is_dir():
            raise OutputError(f"{folder} is not a folder: name another output")
        for read in inputs:
            real = Path(os.path.realpath(read))
            if real.exists() and any(parent.samefile(target) for parent in (real, *real.parents)):
                raise OutputError(f"{folder} holds an input, {read}: name another output")
    return target


@contextmanager
def replaced_atomically(path: Path, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield a path beside ``path`` to write to; rename it to ``path`` at the end, or remove it after an exception.

    The yielded path does not have the suffix of ``path``: pass the format to functions that derive it from the suffix,
    and an open file to ``numpy.save``, which would append ``.npy``.

    Arguments and errors are those of :func:`check_output`; an OSError during writing names ``path``.
    """
    target = check_output(path, inputs)
    if _is_stream(path):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder, path.name)
            # Appended: if stdout is redirected to a file, that may already have content.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
                stream.write(Path(folder, path.name).read_bytes())
        return
    # The process id keeps apart processes that write the same file at the same time.
    ending = f".{os.getpid()}{UNFINISHED}"
    kept = os.fsdecode(os.fsencode(target.name)[: _LONGEST_NAME - len(ending)])
    unfinished = target.with_name(f"{kept}{ending}")
    try:
        yield unfinished
        unfinished.replace(target)
    except BaseException as error:
        with suppress(OSError):  # the error of the block is raised
            unfinished.unlink()
        _name_file(error, path, unfinished)
        raise


@contextmanager
def folder_replaced_atomically(folder: Path, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield a new folder beside ``folder`` to write to; replace ``folder`` with it at the end, or remove it on failure.

    Raises OutputError as :func:`check_output_folder` does, and OSError if another process has just replaced the folder.
    """
    target = check_output_folder(folder, inputs)
    unfinished, outgoing = (target.with_name(f"{target.name}.{os.getpid()}{end}") for end in (UNFINISHED, ".replaced"))
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir()
        yield unfinished
        if target.exists():
            target.rename(outgoing)
        unfinished.rename(target)
    except OSError as error:
        _name_file(error, folder, unfinished)
        raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(outgoing, ignore_errors=True)


def inode_of(path: Path) -> tuple[int, int] | None:
    """Return device and inode, which identify the file at a path; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_stream(path: Path) -> bool:
    """Return whether a path stands for an open file of this process or for /dev/null."""
    absolute = path.absolute()
    return str(absolute) in _STREAMS or str(absolute.parent) in ("/dev/fd", "/proc/self/fd")


def _name_file(error: BaseException, path: Path, unfinished: Path) -> None:
    """Set the file name of an OSError to the output; the error of a full disk, for example, names no file."""
    if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(unfinished)):
        error.filename = str(path)


def write_bytes_atomically(path: Path, data: bytes, inputs: Iterable[Path] = ()) -> None:
    """Write a file atomically; see :func:`replaced_atomically`."""
    with replaced_atomically(path, inputs) as unfinished:
        unfinished.write_bytes(data)


def write_text_atomically(path: Path, text: str, inputs: Iterable[Path] = ()) -> None:
    """Write a UTF-8 file atomically; line ends are not converted, and lone surrogates are written as "?".

    File names in Python have lone surrogates for bytes that are not UTF-8.
    """
    write_bytes_atomically(path, text.encode(errors="replace"), inputs)


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
    return xdg_folder("XDG_CACHE_HOME", ".cache")


def xdg_folder(variable: str, otherwise: str) -> Path:
    """Return the folder of this package below the folder that a variable names, else below one in the home folder."""
    chosen = os.environ.get(variable, "")
    # The XDG specification says that relative paths are to be ignored.
    return (Path(chosen) if chosen.startswith("/") else Path.home() / otherwise) / PACKAGE


def config_file(name: str) -> Path:
    """Find a file of the package's `config/` folder; raises FileNotFoundError if it is not installed."""
    return _installed(f"config/{name}")


def message_definitions() -> dict[str, Path]:
    """Find the definitions of the package's messages: the .msg file of each message by its name, such as "Caption".

    They are readable without ROS. Raises FileNotFoundError if they are not installed.
    """
    folder = _installed("msg/Caption.msg").parent
    return {path.stem: path for path in sorted(folder.glob("*.msg"))}


def _installed(name: str) -> Path:
    """Find a file in the checkout, in the folder `interfaces` that setup.py adds to the package, or in ROS."""
    package = Path(__file__).resolve().parent
    checkout = [package.parent] if (package.parent / "package.xml").is_file() else []
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    folders = [*checkout, package / "interfaces", *(Path(prefix, "share", PACKAGE) for prefix in prefixes)]
    for folder in folders:
        if (path := folder / name).is_file():
            return path
    raise FileNotFoundError(f"{name} is not installed: it is not in {' or '.join(map(str, folders))}")
