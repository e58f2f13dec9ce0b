"""The terminal as the view uses it: another screen, keys without Enter, no cursor, and all of it taken back."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import IO

from rich.console import Console
from rich.region import Region
from rich.text import Text

from smart_caption_ros.live.terminal.keys import Key, KeyParser
from smart_caption_ros.text import visible

_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_DEFAULT_SIZE = (80, 24)
_MAX_KEY_BYTES = 4096
_MAX_LOG_LINES, _MAX_LOG_BYTES = 20, 8192


class Screen:
    """Context manager that owns the terminal of this process; to be entered on the main thread.

    SIGINT, SIGTERM, SIGHUP and SIGQUIT only set :attr:`ended_by`; SIGTSTP (Ctrl-Z) gives the terminal back until the
    process continues. What libraries write to a standard error that is the same terminal is kept, and printed at the
    end.
    """

    def __init__(self) -> None:
        self.ended_by: signal.Signals | None = None
        """The signal that asked the process to end."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode
        self._console = Console(file=sys.stdout, force_terminal=True, highlight=False, legacy_windows=False)
        self._parser = KeyParser()
        self._shown: list[Text] = []
        self._shown_size = (0, 0)
        self._suspend = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Screen:
        with contextlib.ExitStack() as stack:
            for number in (*_END_SIGNALS, signal.SIGTSTP, signal.SIGCONT):
                before = signal.signal(number, self._record)
                stack.callback(signal.signal, number, before)
            stack.enter_context(_kept_stderr())
            self._keyboard = stack.enter_context(_keyboard())
            self._settings = None if self._keyboard is None else termios.tcgetattr(self._keyboard)
            stack.callback(self._leave)
            self._take()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the terminal in cells."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError:  # the terminal is gone
            return _DEFAULT_SIZE
        # A serial line reports 0 x 0.
        return (size.columns or _DEFAULT_SIZE[0], size.lines or _DEFAULT_SIZE[1])

    def draw(self, lines: Sequence[Text]) -> None:
        """Show lines, as many as the terminal has; only those that changed are sent.

        Raises:
            OSError: the terminal is gone.
        """
        size = self.size
        self._console.size = size
        if size != self._shown_size:
            self.forget()
        with self._console:  # one write for all lines
            for row, line in enumerate(lines[: size[1]]):
                if row >= len(self._shown) or line != self._shown[row] or line.style != self._shown[row].style:
                    self._console.update_screen(line, region=Region(0, row, size[0], 1))
        self._console.file.flush()
        self._shown, self._shown_size = list(lines), size

    def forget(self) -> None:
        """Send every line the next time, because the terminal may show something else."""
        self._shown = []

    def wait(self, timeout_s: float) -> list[Key | int]:
        """Wait for keys at most so long, and return those that were pressed."""
        if self._suspend:
            self._stop_until_continued()
        if self._keyboard is None:
            select.select([], [], [], timeout_s)
            return []
        ready, _, _ = select.select([self._keyboard], [], [], timeout_s)
        if not ready:
            return []
        try:
            received = os.read(self._keyboard, _MAX_KEY_BYTES)
        except OSError:  # the terminal is gone
            received = b""
        if not received:
            self.ended_by = self.ended_by or signal.SIGHUP
            return []
        return self._parser.feed(received)

    def _take(self) -> None:
        if self._keyboard is not None:
            # Keys come at once and are not echoed; Ctrl-C and Ctrl-Z stay signals.
            tty.setcbreak(self._keyboard, termios.TCSADRAIN)
        self._console.set_alt_screen(True)
        self._console.show_cursor(False)
        self.forget()

    def _leave(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            self._console.set_alt_screen(False)
            self._console.show_cursor(True)
            self._console.file.flush()
        if self._keyboard is not None and self._settings is not None:
            with contextlib.suppress(termios.error):
                # Keys that were pressed and not read are not for the shell.
                termios.tcsetattr(self._keyboard, termios.TCSAFLUSH, self._settings)

    def _stop_until_continued(self) -> None:
        self._suspend = False
        self._leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    def _record(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._suspend = True
        elif number == signal.SIGCONT:
            self.forget()
        else:
            self.ended_by = signal.Signals(number)


@contextlib.contextmanager
def _keyboard() -> Iterator[int | None]:
    """Yield a file descriptor of the terminal's keys; None where there is no terminal to read from."""
    if sys.stdin is not None and sys.stdin.isatty():
        yield sys.stdin.fileno()
        return
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _kept_stderr() -> Iterator[None]:
    """Keep what is written to standard error off the screen, and print the end of it afterwards."""
    if not os.isatty(2):
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as log:
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            with contextlib.suppress(OSError):
                _print_end_of(log)


def _print_end_of(log: IO[bytes]) -> None:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _MAX_LOG_BYTES))
    for line in log.read().decode(errors="replace").splitlines()[-_MAX_LOG_LINES:]:
        print(visible(line), file=sys.stderr)
