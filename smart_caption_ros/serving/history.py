"""The last two minutes of all cameras: a caption a second with its frame, in bounded memory."""

from collections import OrderedDict
from dataclasses import dataclass

from smart_caption_ros.record import CaptionRecord

SPAN_S = 120.0
PERIOD_S = 1.0
"""Time between two captions of a camera that are kept."""
MAX_BYTES = 64 << 20
"""Maximum size of all pictures; above it the oldest moments are dropped."""
MAX_MOMENTS = 4000


@dataclass(frozen=True)
class Moment:
    """A caption that was shown, and its frame.

    Attributes:
        picture: JPEG of the frame; None if there is none, or if no browser was connected.
    """

    number: int
    live: CaptionRecord
    picture: bytes | None


class History:
    """Moments by the number of their caption, the oldest first; not thread-safe."""

    def __init__(self) -> None:
        self._moments: OrderedDict[int, Moment] = OrderedDict()
        self._bytes = 0
        self._due_s: dict[str, float] = {}

    def is_due(self, live: CaptionRecord) -> bool:
        """Return whether a caption is to be kept; if so, the next one is due :data:`PERIOD_S` later."""
        if live.received_monotonic_s < self._due_s.get(live.camera, 0.0):
            return False
        self._due_s[live.camera] = live.received_monotonic_s + PERIOD_S
        return True

    def add(self, moment: Moment) -> None:
        """Keep a moment, and drop those that are too old or too many."""
        self._moments[moment.number] = moment
        self._bytes += len(moment.picture or b"")
        earliest_s = moment.live.received_monotonic_s - SPAN_S
        while self._moments and (
            self._bytes > MAX_BYTES
            or len(self._moments) > MAX_MOMENTS
            or next(iter(self._moments.values())).live.received_monotonic_s < earliest_s
        ):
            _, oldest = self._moments.popitem(last=False)
            self._bytes -= len(oldest.picture or b"")

    def forget(self, camera: str) -> None:
        self._due_s.pop(camera, None)
        for moment in self.of(camera):
            del self._moments[moment.number]
            self._bytes -= len(moment.picture or b"")

    def of(self, camera: str) -> list[Moment]:
        """Return the moments of a camera, the oldest first."""
        return [moment for moment in self._moments.values() if moment.live.camera == camera]

    def get(self, number: int) -> Moment | None:
        """Return the moment of a caption; None if it is not kept."""
        return self._moments.get(number)
