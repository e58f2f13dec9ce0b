"""Waiting for what another thread does."""

import time


def wait_for(condition, what="change", timeout_s=20.0):
    """Return as soon as the condition holds; fail if it does not in time."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, f"no {what} after {timeout_s:g} s"
        time.sleep(0.01)
