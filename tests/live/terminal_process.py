"""A process on a terminal of its own: types, changes its size, and reads the screen."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

CLI = "from smart_caption_ros.cli import main; main()"


def _take_terminal() -> None:
    """Make standard input the process's terminal; a terminal that closes ends it also where nohup started the tests."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class TerminalProcess:
    """Runs `python -c CODE ARGUMENTS...` on a pseudo-terminal of xterm's kind."""

    def __init__(self, code, *arguments, size=(80, 24), **environment):
        self._master, self._slave = pty.openpty()
        self.size = size
        self.resize(size)
        self.settings = termios.tcgetattr(self._slave)
        self.received = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": "", **environment},
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()
        os.close(self._slave)

    def resize(self, size):
        """Give the window another size, width and height; the kernel sends SIGWINCH."""
        self.size = size
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def type(self, keys):
        os.write(self._master, keys)

    def hang_up(self):
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    @property
    def settings_now(self):
        """The settings of the terminal, to be compared with `settings`."""
        return termios.tcgetattr(self._slave)

    @property
    def screen(self):
        """The visible text: the last drawing on the alternate screen, or nothing outside of it."""
        _, entered, shown = self.received.rpartition("\x1b[?1049h")
        if not entered or "\x1b[?1049l" in shown:
            return ""
        drawings = shown.split("\x1b[H")
        whole = [drawing for drawing in drawings if drawing.count("\n") >= self.size[1] - 1]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", whole[-1]).replace("\r", "") if whole else ""

    def wait_for(self, condition, timeout_s=60.0):
        end_s = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < end_s, f"status {self.process.poll()}, screen:\n{self.screen}\n{self.received!r}"
            self._read(0.1)

    def wait(self, timeout_s=30.0):
        self.wait_for(lambda: self.process.poll() is not None, timeout_s)
        self._read(0.0)
        return self.process.wait()

    def _read(self, timeout_s):
        if self._master < 0:
            time.sleep(timeout_s)
        elif select.select([self._master], [], [], timeout_s)[0]:
            with contextlib.suppress(OSError):
                self.received += os.read(self._master, 1 << 16).decode(errors="replace")
