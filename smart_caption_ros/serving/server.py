"""The server of the page: a thread with an event loop, and the socket that it listens on."""

import asyncio
import errno
import logging
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_caption_ros.caption_log.schema import default_log_path
from smart_caption_ros.serving.access import Access, ServingError
from smart_caption_ros.serving.hub import Hub

if TYPE_CHECKING:
    import uvicorn

_SEND_BUFFER_BYTES = 128 * 1024
_STALLED_S = 30  # time after which the kernel closes the connection of a client that acknowledges nothing
_STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of a server's certificate and private key; the file of the certificate may contain both."""

    certificate: Path
    key: Path | None = None

    def check(self) -> None:
        """Raise ServingError unless both can be read and belong together."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; ValueError: the key has a password
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ServingError(f"the certificate {self.certificate} cannot be used: {reason}") from None


class PageServer:
    """Serves the captions of a hub; a context manager that starts and stops its thread."""

    def __init__(
        self,
        hub: Hub,
        access: Access,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: TlsFiles | None = None,
        log: Path | None = None,
    ) -> None:
        """Bind the address, so that a port in use is reported before a model is loaded.

        Args:
            port: 0 takes a free one.
            tls: certificate and key for HTTPS; None serves plain HTTP.
            log: the caption log that the page searches; None takes the default one. It may be created later.

        Raises:
            ServingError: the address or the certificate cannot be used, or the packages of the server are not
                installed.
        """
        self._hub = hub
        self._scheme = "http" if tls is None else "https"
        self._server = _make_server(hub, access, tls, log or default_log_path())
        self._socket = _bind(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="page server", daemon=True)
        self._started = threading.Event()

    @property
    def url(self) -> str:
        """Address of the page on this machine, without the token."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def __enter__(self) -> "PageServer":
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all streams and the thread, and free the port; calling it again does nothing."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT_S)
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        from smart_caption_ros.serving.connections import ERROR_LIMIT, report_error

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_error)
        for name in ("uvicorn.error", "smart_caption_ros.serving.connections"):
            logging.getLogger(name).addFilter(ERROR_LIMIT)
        self._hub.attach(loop)
        self._started.set()  # the socket listens already: a request that comes now waits
        await self._server.serve(sockets=[self._socket])


def _make_server(hub: Hub, access: Access, tls: TlsFiles | None, log: Path) -> "uvicorn.Server":
    try:
        import uvicorn

        from smart_caption_ros.serving.application import make_application
        from smart_caption_ros.serving.connections import BoundedProtocol
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("anyio", "starlette", "uvicorn"):
            raise
        raise ServingError(
            f"the page needs {error.name}, which is not installed: pip install 'smart_caption_ros[serve]'"
        ) from None

    if tls is not None:
        tls.check()

    class Server(uvicorn.Server):
        """Ends the streams before it waits for the connections to end."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            hub.detach()
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            make_application(hub, access, log),
            access_log=False,
            http=BoundedProtocol,
            lifespan="off",
            log_config=None,
            loop="asyncio",
            server_header=False,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
            timeout_graceful_shutdown=1,
            ws="none",
        )
    )


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (socket.gaierror, UnicodeError):
        raise ServingError(f"there is no address {host} to listen on; 127.0.0.1 and 0.0.0.0 always work") from None
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit these options, which limit what the kernel buffers for a browser that does not read.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _STALLED_S)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ServingError(_why_not(host, port, error)) from None
    return listening


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken by another program; choose another one with --port, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"port {port} is for the administrator alone; choose one from 1024 with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine; 0.0.0.0 listens on all of them"
    return f"cannot listen on port {port} of {host}: {error.strerror}"
