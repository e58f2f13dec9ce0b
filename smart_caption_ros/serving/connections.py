"""Limits of the connections of browsers: their number, and the time that each may keep the server waiting."""

import asyncio
import logging
import resource
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 300
"""Enough for a hundred streams and what their pages load."""
HEADER_TIMEOUT_S = 10.0
"""Time in which the header of a request has to arrive, seconds."""
STALLED_S = 30.0
"""Time after which a client that does not read is disconnected, seconds."""
_LOG_PERIOD_S = 10.0

logger = logging.getLogger(__name__)


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with limits for the number of connections and the time until a request is complete.

    If there are too many connections, the oldest one without a complete request is closed, so that clients that connect
    and send nothing keep nobody out.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._opened_s = time.monotonic()
        self._header_timer: asyncio.TimerHandle | None = None
        self._stalled_timer: asyncio.TimerHandle | None = None
        self._watch_header()
        open_ones = [other for other in self.connections if not other.transport.is_closing()]
        if len(open_ones) > _max_connections():
            waiting = [other for other in open_ones if isinstance(other, BoundedProtocol) and other._is_waiting]
            min(waiting, key=lambda other: other._opened_s).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_header()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled_timer = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._stalled_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._header_timer)
        _cancel(self._stalled_timer)
        super().connection_lost(exc)

    @property
    def _is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _watch_header(self) -> None:
        if not self._is_waiting:
            _cancel(self._header_timer)
            self._header_timer = None
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.abort)


class ErrorLimit(logging.Filter):
    """Lets one record of a logger through every ten seconds, on one line, because clients can cause any number."""

    def __init__(self) -> None:
        super().__init__()
        self._due_s = 0.0
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if (now_s := time.monotonic()) < self._due_s:
            self._left_out += 1
            return False
        error = record.exc_info[1] if record.exc_info else None
        record.msg = f"{record.getMessage().strip()}{'' if error is None else f': {type(error).__name__}: {error}'}"
        if self._left_out:
            record.msg += f" ({self._left_out} more since the last one)"
        record.args, record.exc_info, record.exc_text = None, None, None
        self._due_s, self._left_out = now_s + _LOG_PERIOD_S, 0
        return True


ERROR_LIMIT = ErrorLimit()


def report_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop, such as too many open files, which asyncio would repeat with a traceback."""
    logger.warning("the page server: %s", context.get("message"), exc_info=context.get("exception"))


def _max_connections() -> int:
    """Return the maximum number of connections: at most half of the files that the process may open."""
    may_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if may_open == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, may_open // 2)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
