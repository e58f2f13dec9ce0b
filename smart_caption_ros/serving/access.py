"""Access to the page: a token, and the host names that a request may address.

A page on another site can make a browser send requests to this machine, but it cannot read the answers unless its own
name resolves to this machine's address (DNS rebinding). The Host header of such a request has that name, and the
request is refused.
"""

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable

from smart_caption_ros.errors import ExpectedError

MIN_TOKEN_LENGTH = 16
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d+)?")


def make_token() -> str:
    """Generate a token of 192 random bits, for a URL."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Return whether an address or name to listen on can be reached from this machine alone."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


class ServingError(ExpectedError):
    """The page cannot be served."""


class Access:
    """Checks requests: their Host header must be a name of this machine or an IP address, and they need the token."""

    def __init__(self, token: str | None = None, names: Iterable[str] = ()) -> None:
        """
        Args:
            token: the secret; None admits every request.
            names: further names of this machine that a request may address, without a port.

        Raises:
            ServingError: the token is too short or has other characters.
        """
        if token is not None and (len(token) < MIN_TOKEN_LENGTH or not _TOKEN.fullmatch(token)):
            raise ServingError(
                f"the token must have at least {MIN_TOKEN_LENGTH} characters, each a letter, a digit, - or _; leave it "
                "out for a random one"
            )
        self.token = token
        own = socket.gethostname()
        self.names = frozenset(name.lower().rstrip(".") for name in (own, f"{own}.local", *names))

    def allows_host(self, header: str) -> bool:
        """Return whether a request with this Host header is for this machine.

        All IP addresses are allowed, because another site cannot make them resolve to this machine.
        """
        match = _HOST.fullmatch(header)
        if match is None:
            return False
        name = match["name"].lower().strip("[]").rstrip(".")
        return name == "localhost" or name in self.names or _address(name) is not None

    def allows_token(self, given: Iterable[str]) -> bool:
        """Return whether one of the given tokens is right, in a time that does not depend on their characters."""
        if self.token is None:
            return True
        expected = self.token.encode()
        are_right = [hmac.compare_digest(token.encode(), expected) for token in given]
        return any(are_right)
