"""What the commands have in common: options, exit statuses, sentences instead of tracebacks, a console."""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


PROGRAM = "smart-caption"
FAILED, INTERRUPTED = 1, 130

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
BundleArgument = Annotated[
    Path | None, typer.Argument(metavar="PATH", help="The bundle's folder; the one shipped by default.")
]


@contextmanager
def failures_in_a_sentence() -> Iterator[None]:
    """Turn what can go wrong into one sentence on stderr and exit status 1; Ctrl-C into a quiet 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ImportError as error:
        complain(f"{error}; run `{PROGRAM} doctor` to see what is missing")
        raise typer.Exit(FAILED) from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of our output had enough
            raise
        complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        raise typer.Exit(FAILED) from error
    except Exception as error:
        from smart_caption_ros.captioning import BundleError, DetectorError, EngineError
        from smart_caption_ros.evaluation.caption_cache import KeptCaptionsError
        from smart_caption_ros.grounding import CoverageError
        from smart_caption_ros.sources import SourceError

        expected = (BundleError, CoverageError, DetectorError, EngineError, KeptCaptionsError, SourceError)
        if not isinstance(error, expected):
            raise
        complain(str(error))
        raise typer.Exit(FAILED) from error


def complain(sentence: str) -> None:
    print(f"{PROGRAM}: {printable(sentence)}", file=sys.stderr)


def check_engine(name: str) -> None:
    """Refuse what is the name of no engine."""
    from smart_caption_ros.engines import ENGINE_NAMES

    if name not in ENGINE_NAMES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(ENGINE_NAMES)}.", param_hint="--engine")


def printable(text: str) -> str:
    """Text that any terminal takes: file names may hold bytes that are no characters."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def console() -> Console:
    from rich.console import Console

    # In a pipe or a file there is no width to keep to, and a table cut at 80 columns has lost its paths.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def log_to_terminal() -> None:
    """Warnings of the package as lines on stderr; skipped frames are answered for instead."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: %(message)s"))
    logger = logging.getLogger("smart_caption_ros")
    if not logger.handlers:
        logger.addHandler(handler)
    logging.getLogger("smart_caption_ros.sources.source").setLevel(logging.ERROR)
