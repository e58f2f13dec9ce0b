"""What the commands share: exit statuses, errors as one sentence, output for people and as JSON."""

import errno
import inspect
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.files import OutputError, check_output, write_text_atomically
from smart_caption_ros.json_text import json_text
from smart_caption_ros.text import error_line, escaped, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from tqdm import tqdm


PROGRAM = "smart-caption"
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
_MAX_SENTENCE = 2000
_STDOUT, _STDERR = 1, 2  # file descriptors

_json_file: TextIO | None = None  # where print_json() prints; None: sys.stdout


@contextmanager
def errors_in_a_sentence() -> Iterator[None]:
    """Report an expected error as one sentence on stderr and exit with status 1; exit with 130 after Ctrl-C.

    The status is 2 for an output that must not be written.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except OutputError as error:
        report_error(str(error))
        raise typer.Exit(WRONG_USAGE) from error
    except ImportError as error:
        report_error(f"{error}; run `{PROGRAM} doctor` to see what is missing")
        raise typer.Exit(FAILED) from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader closed the pipe, as `head` does; typer exits quietly
            raise
        report_error(error_line(error))
        raise typer.Exit(FAILED) from error
    except ExpectedError as error:
        report_error(str(error))
        raise typer.Exit(FAILED) from error


@contextmanager
def needs_ros(what: str) -> Iterator[None]:
    """Report a missing module of ROS 2 as one sentence on stderr and exit with status 1.

    Args:
        what: beginning of the sentence, "the demo".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing in ("smart_caption_ros.msg", "smart_caption_ros.srv"):
            report_error(
                f"{what} needs the messages of this package, which were not built: ROS 2 was not there when it was "
                "installed; install it again in the environment with ROS 2: pip install ."
            )
        elif missing.split(".")[0] in ("smart_caption_ros", "numpy", "cv2"):
            raise
        else:
            report_error(
                f"{what} needs ROS 2, and there is no module {missing}: source /opt/ros/jazzy/setup.bash, or run "
                "`make demo` in a checkout, which makes an environment with ROS 2"
            )
        raise typer.Exit(FAILED) from None


def report_error(sentence: str) -> None:
    """Print a sentence on one line of stderr, with the name of the program; control characters are escaped."""
    print(f"{PROGRAM}: {printable(visible(sentence, _MAX_SENTENCE))}", file=sys.stderr, flush=True)


def check_output_file(path: Path | None, option: str | None = None, inputs: Iterable[Path] = ()) -> None:
    """Check before any work that the file that an option names can be written; raises as :func:`check_output`."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise typer.BadParameter(f"There is no folder {path.parent} to write {path.name} into.", param_hint=option)
    check_output(path, inputs)


def input_files(sources: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files and folders that a command reads frames from, and the images and labels in these folders."""
    from smart_caption_ros.sources.acvr import LABELS
    from smart_caption_ros.sources.image_folder import is_image_file

    for source in map(Path, sources):
        yield source
        for folder in (source, *(labels.parent for labels in source.glob(f"*/{LABELS}"))) if source.is_dir() else ():
            yield from (path for path in folder.iterdir() if path.name == LABELS or is_image_file(path))


def bundle_files(bundles: Iterable[Path | None]) -> Iterator[Path]:
    """Yield the files of the bundles that a command was told to run."""
    for bundle in bundles:
        if bundle is not None and bundle.is_dir():
            yield from bundle.iterdir()


def printable(text: str) -> str:
    """Escape control characters, line ends and undecodable bytes of file names; replace what stdout cannot encode."""
    encoding = sys.stdout.encoding or "utf-8"
    return escaped(text).encode(encoding, "replace").decode(encoding)


@contextmanager
def only_json_on_stdout() -> Iterator[None]:
    """Redirect stdout to stderr in the block, except for :func:`print_json`.

    The file descriptor is redirected until the process ends, because libraries in C and C++, such as Fast DDS, write to
    it at the end of the process as well.
    """
    global _json_file
    _json_file = sys.stdout
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:  # else a test has replaced it, or it is closed
        sys.stdout.flush()
        _json_file = os.fdopen(os.dup(_STDOUT), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
        with suppress(OSError):  # stderr is closed
            os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _json_file = None


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON on stdout; on one line with `indent` None."""
    print(json_text(value, indent=indent), file=_json_file or sys.stdout, flush=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as an indented JSON file, atomically."""
    write_text_atomically(path, json_text(value, indent=2, ensure_ascii=False) + "\n")


def console() -> "Console":
    """Return a console that prints tables to stdout."""
    from rich.console import Console

    # Pipes and files have no width; at the default of 80 columns, tables would truncate paths.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def print_line(text: str, style: str = "") -> None:
    """Print a line on stdout without wrapping it or interpreting markup."""
    from rich.text import Text

    console().print(Text(printable(text), style=style), soft_wrap=True)


def print_table(
    titles: Sequence[str], rows: "Iterable[Sequence[str | Text]]", *, figures: Collection[str] = ()
) -> None:
    """Print a table on stdout, without a header if no column has a title; markup is not interpreted.

    Args:
        figures: titles of the columns that are aligned to the right.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=any(titles))
    for title in titles:
        table.add_column(Text(printable(title)), justify="right" if title in figures else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    console().print(table)


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a text on stderr, if that is a terminal; yields a function that changes the text."""
    from rich.console import Console

    with Console(stderr=True).status(text) as shown:
        yield shown.update


def progress_bar(total: int | None = None, unit: str = "frame", delay_s: float = 1.0) -> "tqdm[Any]":
    """Create a progress bar on stderr, if that is a terminal; it appears after a delay and disappears at its end."""
    from tqdm import tqdm

    # tqdm has `delay` since 4.58; Ubuntu 22.04 has 4.57.
    delay: dict[str, Any] = {"delay": delay_s} if "delay" in inspect.signature(tqdm.__init__).parameters else {}
    return tqdm(total=total, unit=unit, leave=False, disable=not sys.stderr.isatty(), **delay)


def log_to_terminal() -> None:
    """Print warnings of the package on stderr, except those about skipped frames, which the commands report."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: %(message)s"))
    logger = logging.getLogger("smart_caption_ros")
    if not logger.handlers:
        logger.addHandler(handler)
    logging.getLogger("smart_caption_ros.sources.source").setLevel(logging.ERROR)
