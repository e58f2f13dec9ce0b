"""The events beside the captions of a feed."""

import enum
import time
from dataclasses import dataclass, field


class EventKind(enum.Enum):
    """What a :class:`FeedEvent` is about."""

    APPEARED = "appeared"
    """A camera has a publisher now, for the first time or again."""
    GONE = "gone"
    """A camera has no publisher any more, or its source has ended."""
    DIAGNOSTICS = "diagnostics"
    """The health of a camera changed to another level."""
    ERROR = "error"
    """Something could not be read."""
    ENDED = "ended"
    """The feed gives nothing more; its last item."""


@dataclass(frozen=True)
class FeedEvent:
    """Something beside the captions that a person wants to know.

    Attributes:
        camera: name of the camera; None where it is about no camera or several.
        received_monotonic_s: when it happened, by :func:`time.monotonic`; received_s is seconds since the epoch.
    """

    kind: EventKind
    text: str
    camera: str | None = None
    received_s: float = field(default_factory=time.time)
    received_monotonic_s: float = field(default_factory=time.monotonic)
