"""Records of what happens in a soak, for the checks."""

from collections import Counter
from dataclasses import dataclass, field

from benchmarks.node_soak.images import Stamp, Template


@dataclass(frozen=True)
class Answered:
    """A caption message that arrived."""

    frame_id: str
    stamp: Stamp
    status: int
    text: str
    score: float
    faults: tuple[str, ...] = ()
    """Fields with NaN, infinity or control characters, one clause each."""


@dataclass(frozen=True)
class Counts:
    """The counts of one diagnostics message of the node."""

    received: int
    answered: int
    answered_ok: int
    dropped: int
    passed_over: int
    unchanged: int
    lost: int
    state: str

    @property
    def in_progress(self) -> int:
        """Images received that are neither answered, dropped, passed over nor unchanged."""
        return self.received - self.answered - self.dropped - self.passed_over - self.unchanged


@dataclass
class Record:
    """Records of a soak, the input of its checks.

    Attributes:
        published: message and stamp of every image, by its number.
        answers: the captions, in the order of arrival.
        counts: the diagnostics, in the order of arrival.
        resting_mb: seconds since the beginning and resident memory of the node in 1e6 bytes at each rest.
        peak_mb: greatest resident memory of the node.
        cpu_s: processor time of the node since its start, several times.
        disturbances: number of disturbances by kind.
        problems: what went wrong with the disturbances and the process, one sentence each.
    """

    published: list[tuple[Template, Stamp]] = field(default_factory=list)
    answers: list[Answered] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    resting_mb: list[tuple[float, float]] = field(default_factory=list)
    peak_mb: float = 0.0
    cpu_s: list[float] = field(default_factory=list)
    disturbances: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
