"""The web page of a soak: `smart-caption serve` as a process, and browsers that send half of a request."""

import http.client
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

_HALF_REQUESTS = 400
_HELD_S = 1.0
_ANSWER_WITHIN_S = 60.0
_MOST_LOG_BYTES = 1_000_000


class Page:
    """Shows the captions of the soak on a free port, from the beginning of the block to its end."""

    def __init__(self, log: Path) -> None:
        """
        Args:
            log: file for the output of the process.
        """
        self._log = log
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]

    def __enter__(self) -> "Page":
        smart_caption = "import sys; from smart_caption_ros.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", smart_caption, "serve", "--port", str(self._port)]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()

    def send_half_requests(self) -> str:
        """Open many connections that end within a request, and ask for the page.

        Returns:
            What went wrong, one sentence; empty if the page was answered.
        """
        with ExitStack() as stack:
            for _ in range(_HALF_REQUESTS):
                with suppress(OSError):  # the page may refuse more
                    connection = stack.enter_context(socket.create_connection(("127.0.0.1", self._port), timeout=1.0))
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: ")
            time.sleep(_HELD_S)
            end_s = time.monotonic() + _ANSWER_WITHIN_S
            while time.monotonic() < end_s:
                if self._answers():
                    return ""
                time.sleep(0.5)
        return f"the page did not answer within {_ANSWER_WITHIN_S:g} s of {_HALF_REQUESTS} half requests"

    def problems(self) -> list[str]:
        """Say whether the process has ended, or filled its log."""
        found = []
        if (status := self._process.poll()) is not None:
            found.append(f"the page ended with the status {status}: {self._log.read_text(errors='replace')[-500:]}")
        if (size := self._log.stat().st_size) > _MOST_LOG_BYTES:
            found.append(f"the page wrote {size / 1e6:.1f} MB of log")
        return found

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=2.0)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
