"""Which of the images that arrive are captioned: the parameters `trigger` and `max_rate_hz`."""

from __future__ import annotations

import enum
import math


class Trigger(enum.Enum):
    """The values of the parameter `trigger`."""

    ALWAYS = "always"
    CHANGE = "change"
    REQUEST = "request"


class RateLimit:
    """Selects images so that the mean rate does not exceed a maximum. It is not thread-safe.

    An image may come half a period early, so that an irregular camera is captioned at its own rate where that is the
    maximum.
    """

    def __init__(self) -> None:
        self._due_s = -math.inf

    def passes(self, now_s: float, max_rate_hz: float) -> bool:
        """Return whether an image that arrives now is captioned.

        Args:
            now_s: time of a monotonic clock in seconds.
            max_rate_hz: maximum rate, which may change between two calls; 0 sets no limit.
        """
        if not max_rate_hz:
            return True
        period_s = 1 / max_rate_hz
        early_s = self._due_s - now_s
        if period_s / 2 < early_s <= 1.5 * period_s:  # longer only after a change of the rate
            return False
        self._due_s = period_s + (self._due_s if 0 < early_s <= period_s / 2 else now_s)
        return True
