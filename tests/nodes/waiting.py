"""Waiting for what another thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(condition: Callable[[], Any], what: str = "change", timeout_s: float = 20.0) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, f"no {what} after {timeout_s:g} s"
        time.sleep(0.01)
