"""The command line, `smart-caption`: one module per command, assembled in `app`.

Commands import what they need when they run, so that `--help` and usage errors are fast, and so that no command needs
libraries that it does not use.
"""

import os
import signal
import sys

_FAILED, _INTERRUPTED = 1, 130


def main() -> None:
    """Entry point of `smart-caption`."""
    # Until a command runs: a KeyboardInterrupt in an import would print a traceback.
    before = signal.signal(signal.SIGINT, lambda *ignored: os._exit(_INTERRUPTED))
    _open_standard_streams()
    from smart_caption_ros.cli.app import app
    from smart_caption_ros.cli.terminal import PROGRAM, report_error

    signal.signal(signal.SIGINT, before)
    status, problem = None, None
    try:
        app(prog_name=PROGRAM)
    except SystemExit as ended:
        status = ended.code
    except OSError as error:
        problem = error
    try:
        sys.stdout.flush()
    except OSError as error:
        problem = problem or error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter reports it once more
    if problem is not None and not status:
        report_error(f"the output cannot be written: {problem.strerror}")
        status = _FAILED
    sys.exit(status)


def _open_standard_streams() -> None:
    """Open /dev/null where standard input, output or error is closed; the next file would take its place otherwise."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
