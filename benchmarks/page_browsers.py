"""Simulated browsers of the page: they read the stream of captions and request the frame of each."""

import http.client
import json
import multiprocessing
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

_CONNECT_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0

Seen = deque[tuple[float, int]]
"""Age in milliseconds and bytes of each frame, with its caption, that the browsers of a process have received."""


@dataclass(frozen=True)
class Load:
    """The browsers of a measurement."""

    browsers: int
    stalled: int
    """How many of them stop reading after their request."""


class Crowd:
    """Browsers in another process, which is not started for a load without browsers."""

    def __init__(self, port: int, load: Load) -> None:
        self._process = None
        if load.browsers:
            context = multiprocessing.get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(target=_browse, args=(other, port, load), daemon=True)
            self._process.start()
            if not self._connection.poll(_CONNECT_TIMEOUT_S):
                raise TimeoutError(f"the browsers did not connect within {_CONNECT_TIMEOUT_S:.0f} s")
            self._connection.recv()

    def forget(self) -> None:
        """Reset what the browsers have received."""
        if self._process is not None:
            self._connection.send("forget")

    def seen(self) -> dict[str, Any]:
        """Return the ages of the frames that arrived, ``ages_ms``, and the ``bytes`` of captions and frames."""
        if self._process is None:
            return {"ages_ms": [], "bytes": 0}
        self._connection.send("seen")
        found: dict[str, Any] = self._connection.recv()
        return found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(_STOP_TIMEOUT_S)


def _browse(connection: Connection, port: int, load: Load) -> None:
    """Run the browsers of a load, and answer questions about what they received."""
    seen: Seen = deque()
    stalled = [_stall(port) for _ in range(load.stalled)]
    streams = [_open(port, "/events") for _ in range(load.browsers - load.stalled)]
    for stream in streams:
        threading.Thread(target=_read, args=(port, stream, seen), daemon=True).start()
    connection.send("connected")
    with suppress(EOFError):
        while question := connection.recv():
            taken = [seen.popleft() for _ in range(len(seen))]
            if question == "seen":
                ages_ms = [age_ms for age_ms, _ in taken]
                connection.send({"ages_ms": ages_ms, "bytes": sum(size for _, size in taken)})
    for browser in stalled:
        browser.close()


def _open(port: int, path: str) -> http.client.HTTPResponse:
    requesting = http.client.HTTPConnection("127.0.0.1", port)
    requesting.request("GET", path)
    return requesting.getresponse()


def _stall(port: int) -> socket.socket:
    """Request the stream and read nothing, with a buffer that is full after a few captions."""
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.connect(("127.0.0.1", port))
    stalled.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return stalled


def _read(port: int, stream: http.client.HTTPResponse, seen: Seen) -> None:
    """Request the frame of each caption, as the page does."""
    frames = http.client.HTTPConnection("127.0.0.1", port)
    event = ""
    with suppress(OSError, http.client.HTTPException):
        while line := stream.readline():
            if line.startswith(b"event: "):
                event = line[7:].decode().strip()
            elif line.startswith(b"data: ") and event == "caption":
                caption = json.loads(line[6:])
                frames.request("GET", f"/{caption['picture']}")
                answer = frames.getresponse()
                picture = answer.read()
                if answer.status == 200:
                    age_ms = 1e3 * (time.monotonic() - float(caption["image"]))
                    seen.append((age_ms, len(line) + len(picture)))
