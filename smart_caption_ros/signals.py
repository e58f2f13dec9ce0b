"""Handle SIGINT and SIGTERM: record them, so that a program ends at points that it chooses."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """End the process with status 0 when SIGINT or SIGTERM arrives; to be entered on the main thread.

    For the start of a command, when there is no work to finish yet: the imports take most of a second, and a
    KeyboardInterrupt during an import would print a traceback. :class:`EndSignals` may be entered inside the block.
    After the block the signals are ignored: the command has its exit status, but the process may take seconds to free
    its memory, and a second SIGINT, which `ros2 launch` sends after that of the terminal, would replace the status.
    """
    for number in _SIGNALS:
        signal.signal(number, lambda *ignored: os._exit(0))
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


class EndSignals:
    """Context manager in which SIGINT and SIGTERM only set `arrived`; to be entered on the main thread.

    A KeyboardInterrupt would leave a start or a stop incomplete, and SIGINT may arrive more than once: from the
    terminal and from `ros2 launch`.
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
