"""How a command of the workstation ends: what went wrong is a sentence, and a status."""

import sys
from collections.abc import Callable
from pathlib import Path


def exit_status(run: Callable[[], int | None], said: tuple[type[Exception], ...], output: Path, stopped: str) -> int:
    """Run a command.

    Args:
        run: does the work; returns an exit status, None for 0.
        said: errors whose message is a sentence for the user.
        output: what is written, for errors of the system that name no file.
        stopped: what Ctrl-C is answered with.

    Returns:
        The exit status: 1 after an error, 130 after Ctrl-C.
    """
    try:
        return run() or 0
    except said as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename or output}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        return 130
