"""One shard of the work, and what an attempt at it comes to; both can be sent to other processes and machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from smart_caption_ros.captioning import BundleError, DetectorError, EngineError
from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.sources import SourceError

_FINAL = (BundleError, CoverageError, DetectorError, EngineError, SourceError, FileNotFoundError, ImportError)
"""What another attempt would end with, too."""


class Work(Protocol):
    """A shard of the work."""

    @property
    def name(self) -> str:
        """Name of the shard in reports."""

    def run(self) -> Any:
        """Do the work; what it returns can be pickled."""


@dataclass(frozen=True)
class Attempt:
    """What came of one attempt at a shard.

    Attributes:
        value: what the work returned; None after an error.
        error: one sentence; empty where there was none.
        is_final: whether another attempt would come to the same.
    """

    value: Any = None
    error: str = ""
    is_final: bool = True


def attempt(work: Work) -> Attempt:
    """Do the work of a shard; never raises an exception."""
    try:
        return Attempt(work.run())
    except _FINAL as error:
        return Attempt(error=_sentence(error))
    except Exception as error:
        return Attempt(error=f"{type(error).__name__}: {_sentence(error)}", is_final=False)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    return " ".join(str(error).split())
