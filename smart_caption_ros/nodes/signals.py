"""SIGINT and SIGTERM as a question that can be asked, instead of an exception that may come anywhere."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class EndSignals:
    """While entered, these signals only set `arrived`, however often they come. For the main thread.

    KeyboardInterrupt in the middle of starting or stopping something leaves it half done, and a terminal and
    `ros2 launch` together send SIGINT more than once.
    """

    def __init__(self) -> None:
        self.arrived = False

    def __enter__(self) -> EndSignals:
        self._before = [signal.signal(number, self._take) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def raise_if_arrived(self) -> None:
        """Raises KeyboardInterrupt once one of the signals has come."""
        if self.arrived:
            raise KeyboardInterrupt

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.arrived = True
