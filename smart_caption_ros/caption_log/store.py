"""Write captions into a log, and keep it within its bounds."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.logged_caption import COLUMNS, LoggedCaption
from smart_caption_ros.caption_log.schema import open_to_write

MIN_BYTES = 1 << 20
"""Smallest maximum size of a log; an empty one has 80 kB."""

_INSERT = f"INSERT INTO caption ({', '.join(COLUMNS)}, search_terms) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"
# Few rows at a time, so that no transaction delays the next caption; four batches delete faster than rows arrive.
_DELETED_AT_ONCE, _BATCHES_AN_APPEND = 16, 4
_MS_PER_S = 1000


@dataclass(frozen=True)
class Bounds:
    """How much a log keeps; the oldest rows are deleted.

    Attributes:
        max_bytes: of tables, index and pictures; 0 for no bound, else at least :data:`MIN_BYTES`.
        max_age_s: of a row, by the clock of this computer; 0 for no bound.
    """

    max_bytes: int = 0
    max_age_s: float = 0.0

    def __post_init__(self) -> None:
        if self.max_bytes and self.max_bytes < MIN_BYTES:
            raise CaptionLogError(f"the maximum size of a log is at least {MIN_BYTES} bytes, not {self.max_bytes}")


class CaptionLog:
    """A log that is open for writing; a context manager. Use it from one thread at a time.

    Each row is one transaction: it is there with its picture and in the search index, or not at all.
    """

    def __init__(self, path: Path, bounds: Bounds = Bounds()) -> None:  # noqa: B008 # immutable
        """Open or create the file.

        Raises:
            CaptionLogError: see :func:`smart_caption_ros.caption_log.schema.open_to_write`.
        """
        self.path = path.expanduser()
        self.bounds = bounds
        self._connection = open_to_write(path)

    def __enter__(self) -> CaptionLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        self._connection.close()

    @property
    def captions(self) -> int:
        """Number of rows."""
        return self._one("SELECT coalesce(sum(captions), 0) FROM origin")

    @property
    def used_bytes(self) -> int:
        """Bytes of the file that are in use; those of deleted rows are used again."""
        pages = self._one("PRAGMA page_count") - self._one("PRAGMA freelist_count")
        return pages * self._one("PRAGMA page_size")

    def append(self, row: LoggedCaption) -> int:
        """Write a row, whole or not at all, and delete old ones where a bound is passed.

        Returns:
            The id of the row.

        Raises:
            CaptionLogError: it cannot be written, for example because the disk is full; nothing was, and the next call
                may succeed.
        """
        row = row.bounded()
        with self._transaction():
            number = self._insert(row, row.time_ms)
        with suppress(CaptionLogError):  # the row is written; the next call tries again, and so does `prune`
            self.prune()
        return number

    def add(self, rows: Iterable[LoggedCaption]) -> tuple[int, int]:
        """Write rows with the ids that they have, in one transaction; no bound is applied.

        A row that is there already is left out; another row with the id of one that is there gets the next free id.

        Returns:
            The number of rows written, and of those left out.

        Raises:
            CaptionLogError: a row cannot be written; none was.
        """
        written = present = 0
        with self._transaction():
            for row in map(LoggedCaption.bounded, rows):
                number = row.time_ms if row.id is None else row.id
                if self._has(replace(row, id=number)):
                    present += 1
                else:
                    self._insert(row, number)
                    written += 1
        return written, present

    def prune(self) -> bool:
        """Delete some of the oldest rows where a bound is passed; the newest row stays.

        Returns:
            Whether all bounds are kept now; if not, the next call goes on.

        Raises:
            CaptionLogError: the file cannot be written.
        """
        for _ in range(_BATCHES_AN_APPEND):
            with self._transaction():
                ids = self._outside_bounds()
                self._connection.executemany("DELETE FROM caption WHERE id = ?", ids)
            if not ids:
                return True
        return False

    def _outside_bounds(self) -> list[tuple[int]]:
        """Return the ids of the oldest rows, a batch at most, if they have to go."""
        condition, parameters = "", []
        if not (self.bounds.max_bytes and self.used_bytes > self.bounds.max_bytes):
            if not self.bounds.max_age_s:
                return []
            condition, parameters = "id < ? AND", [int((time.time() - self.bounds.max_age_s) * _MS_PER_S)]
        query = f"SELECT id FROM caption WHERE {condition} id < (SELECT max(id) FROM caption) ORDER BY id LIMIT ?"
        return self._connection.execute(query, [*parameters, _DELETED_AT_ONCE]).fetchall()

    def _insert(self, row: LoggedCaption, number: int) -> int:
        """Write a row with the smallest free id from a number on; captions of one millisecond are few."""
        while self._connection.execute("SELECT 1 FROM caption WHERE id = ?", (number,)).fetchone():
            number += 1
        self._connection.execute(_INSERT, (*replace(row, id=number).values(), " ".join(row.search_terms)))
        if row.picture is not None:
            self._connection.execute("INSERT INTO picture VALUES (?, ?)", (number, row.picture))
        return number

    def _has(self, row: LoggedCaption) -> bool:
        """Return whether this very row is there, with its id and picture."""
        columns = ", ".join(f"caption.{name}" for name in COLUMNS)
        there = self._connection.execute(
            f"SELECT {columns}, jpeg FROM caption LEFT JOIN picture ON picture.id = caption.id WHERE caption.id = ?",
            (row.id,),
        ).fetchone()
        return bool(there == (*row.values(), row.picture))

    def _one(self, query: str) -> int:
        with self._errors_named("read"):
            return int(self._connection.execute(query).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors_named("written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself rolls back where the disk is full
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors_named(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = "another process has been writing for 5 s" if "locked" in str(error) else str(error)
            raise CaptionLogError(f"the caption log {self.path} cannot be {action}: {reason}") from error
