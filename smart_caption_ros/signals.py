"""Record SIGINT and SIGTERM, to be checked at safe points instead of interrupting the program anywhere."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """End the process with status 0 when one of these signals arrives; to be entered on the main thread.

    For the start of a command, before there is anything to finish: the imports take most of a second, and a
    KeyboardInterrupt in one of them would print a traceback. :class:`EndSignals` may be entered inside. Afterwards the
    signals are ignored, because the command has its exit status and the process takes up to seconds to free its memory:
    a second SIGINT, as `ros2 launch` sends after that of the terminal, would end it as if it had died.
    """
    for number in _SIGNALS:
        signal.signal(number, lambda *ignored: os._exit(0))
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


class EndSignals:
    """Context manager in which these signals only set `arrived`; to be entered on the main thread.

    A KeyboardInterrupt during a start or a stop would leave it incomplete, and a terminal and `ros2 launch` together
    send SIGINT more than once.
    """

    def __init__(self) -> None:
        self.arrived = False
        self.number = 0

    def __enter__(self) -> "EndSignals":
        self._before = [signal.signal(number, self._record) for number in _SIGNALS]
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def raise_if_arrived(self) -> None:
        if self.arrived:
            raise KeyboardInterrupt

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.arrived, self.number = True, number
