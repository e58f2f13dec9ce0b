"""Shards that succeed, fail and end their worker; imported by worker processes."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from smart_caption_ros.sources import SourceError


@dataclass(frozen=True)
class Square:
    number: int

    @property
    def name(self):
        return str(self.number)

    def run(self):
        return self.number**2


@dataclass(frozen=True)
class Failing(Square):
    """A shard that fails in its first attempts, which are counted by files in a folder."""

    folder: Path = Path()
    attempts: int = 1
    kind: str = "error"

    def run(self):
        made = len(list(self.folder.glob(f"{self.number}-*")))
        (self.folder / f"{self.number}-{made}").touch()
        if made >= self.attempts:
            return super().run()
        if self.kind == "death":
            os._exit(7)
        if self.kind == "input":
            raise SourceError("the bag is empty")
        raise RuntimeError("out of\n memory")


@dataclass(frozen=True)
class Sleeping:
    name: str = "sleeping"

    def run(self):
        time.sleep(600)
