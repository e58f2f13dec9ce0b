"""Tasks on a Ray cluster.

Plain tasks instead of Ray Data: a shard is a whole bag that becomes a file, so that there are no rows to stream, and
Ray Data needs pandas and pyarrow.
"""

import logging
import os
import secrets
import shutil
import socket
import tempfile
from concurrent.futures import Future
from typing import Any

from smart_caption_ros.fleet.workers import Attempt, Work, attempt
from smart_caption_ros.sources import SourceError
from smart_caption_ros.text import error_line

LOCAL, AUTO = "local", "auto"
_CONNECT_TIMEOUT_S = 10.0
_AHEAD = 2
"""Shards per CPU that are submitted to the cluster at a time, so that no worker waits for the next one."""


class RayWorkers:
    """Tasks of one CPU each.

    Args:
        address: `local` starts a cluster on this machine, which :meth:`close` ends; `auto`, `HOST:PORT` or
            `ray://HOST:PORT` connects to a running one.

    Raises:
        SourceError: the address is malformed, nothing answers there, or Ray is not installed.
    """

    def __init__(self, address: str, jobs: int | None = None) -> None:
        _check_address(address)
        # Switches off Ray's usage reports; read when Ray is imported, and by the processes that it starts.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Tasks request no GPU, and Ray would hide it from the engines.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError as error:
            raise SourceError(
                "work on a cluster needs the package ray: pip install 'smart_caption_ros[fleet]'"
            ) from error
        self._ray = ray
        self._folder = ""
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address == LOCAL:
            self._folder = tempfile.mkdtemp(prefix="ray-")  # short, because it is part of the names of sockets
            # Only this process and its workers know the token, so that nobody else can submit work to them.
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
            settings |= {
                "num_cpus": jobs or os.cpu_count(),
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": self._folder,
            }
        else:
            settings["address"] = address
        try:
            ray.init(**settings)
            self.capacity = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        except Exception as error:  # Ray raises many kinds of exceptions
            self.close()
            raise SourceError(f"there is no Ray cluster at {address}: {error_line(error)[:300]}") from error
        # Attempts are counted by the caller; Ray's own would hide them.
        self._attempt = ray.remote(attempt).options(num_cpus=1, max_retries=0)

    def submit(self, work: Work) -> Future[Attempt]:
        future: Future[Attempt] = self._attempt.remote(work).future()
        return future

    def close(self) -> None:
        """Disconnect; a local cluster ends."""
        self._ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _check_address(address: str) -> None:
    """Raise SourceError for an address where nothing answers, which Ray would try for minutes."""
    if address in (LOCAL, AUTO):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise SourceError(f"{address!r} must be {LOCAL}, {AUTO}, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host, int(port)), _CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise SourceError(f"there is no Ray cluster at {address}: {error.strerror or error}") from None
