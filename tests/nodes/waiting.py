"""Waiting for what another thread does."""

import time


def wait_for(condition, what="change", timeout_s=60.0):
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, f"no {what} after {timeout_s:g} s"
        time.sleep(0.01)
