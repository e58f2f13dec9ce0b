"""The journal of a bag that is being captioned: a SQLite file beside the output, from which a later run goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.sources import SourceError

SUFFIX = ".journal"


@dataclass(frozen=True)
class Entry:
    """What came of one image.

    Attributes:
        recorded_ns: time of the recording.
        message: the serialised Caption; None where the image message could not be read at all.
        text: the caption; None where the image has none.
        problem: why the image has no caption, one sentence; empty otherwise.
    """

    recorded_ns: int
    message: bytes | None
    text: str | None
    problem: str = ""


class Journal:
    """The captions of a bag so far. A process that is killed loses nothing that it has put.

    Args:
        path: the file; created if missing.
        settings: what the captions depend on. A journal with other settings is refused.

    Raises:
        SourceError: the journal has other settings, is in use, or cannot be written.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
            # Exclusive, so that two processes do not caption the same bag into the same file.
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("CREATE TABLE IF NOT EXISTS settings (json TEXT NOT NULL)")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS captions (camera INTEGER, image INTEGER, recorded_ns INTEGER NOT NULL, "
                "message BLOB, text TEXT, problem TEXT NOT NULL, PRIMARY KEY (camera, image)) WITHOUT ROWID"
            )
            row = self._database.execute("SELECT json FROM settings").fetchone()
            if row is None:
                self._database.execute("INSERT INTO settings VALUES (?)", (json.dumps(settings),))
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure(error) from None
        if row is not None and (other := differing(json.loads(row[0]), settings)):
            self.close()
            raise SourceError(
                f"{path} holds the beginning of a run with {other}: call with the same, or with --force to start anew"
            )

    def get(self, camera: int, image: int) -> Entry | None:
        """Return what came of the image with this number on the topic of this camera; None if it was not captioned."""
        row = self._execute(
            "SELECT recorded_ns, message, text, problem FROM captions WHERE camera = ? AND image = ?", (camera, image)
        ).fetchone()
        return None if row is None else Entry(*row)

    def put(self, camera: int, image: int, entry: Entry) -> None:
        """Write what came of an image."""
        values = (camera, image, entry.recorded_ns, entry.message, entry.text, entry.problem)
        self._execute("INSERT INTO captions VALUES (?, ?, ?, ?, ?, ?)", values)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield the number of the camera and the entry, by the time of the recording."""
        # The numbers alone are sorted, because SQLite would sort whole messages with them.
        query = "SELECT camera, image FROM captions ORDER BY recorded_ns, camera, image"
        for camera, image in self._execute(query):
            if (entry := self.get(camera, image)) is not None:
                yield camera, entry

    def problems(self) -> tuple[int, str]:
        """Return the number of images without a caption because of a problem, and the problem of the first one."""
        query = "SELECT count(*), (SELECT problem FROM captions WHERE problem <> '' ORDER BY recorded_ns LIMIT 1) "
        count, first = self._execute(query + "FROM captions WHERE problem <> ''").fetchone()
        return count, first or ""

    def close(self) -> None:
        """Close the file, which a later run goes on with."""
        self._database.close()

    def remove(self) -> None:
        """Close and remove the file."""
        self.close()
        remove_journal(self.path)

    def _execute(self, query: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(query, values)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def _failure(self, error: sqlite3.Error) -> SourceError:
        if "locked" in str(error):
            return SourceError(f"{self.path} is in use: another process captions the same bag into the same file")
        if "not a database" in str(error):
            return SourceError(f"{self.path} is no journal of captions: remove it")
        return SourceError(
            f"captions cannot be kept in {self.path}: {error}; with more space, the same command goes on from there"
        )


def remove_journal(path: Path) -> None:
    """Remove a journal that is not open, if there is one."""
    for file in (path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))):
        with suppress(FileNotFoundError):
            file.unlink()


def differing(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return the names of the settings that differ, "another bundle and another rate"; empty if they are equal."""
    names = [name for name in dict.fromkeys([*there, *here]) if there.get(name) != here.get(name)]
    return " and ".join(f"another {name.replace('_', ' ')}" for name in names)
