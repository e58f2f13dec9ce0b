"""Write captions into a log and delete old ones to keep it within its bounds."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_caption_ros.caption_log.row import NS_PER_MS, LogRow, bounded
from smart_caption_ros.caption_log.schema import CaptionLogError, open_to_write
from smart_caption_ros.caption_log.words import with_breaks
from smart_caption_ros.files import inode_of
from smart_caption_ros.json_text import json_text

if TYPE_CHECKING:
    from smart_caption_ros.record import CaptionRecord

MIN_BYTES = 10**6
"""Smallest maximum size of a log; an empty one has 80 kB."""

_INSERT = """
    INSERT INTO caption
    SELECT ?, coalesce(max(sequence), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM caption
"""
# Few rows at a time, so that no transaction delays the next caption; four batches delete faster than rows arrive.
_DELETED_AT_ONCE, _BATCHES_AN_APPEND = 16, 4
_MS_PER_S = 1000
_MAX_NS = 2**63 - 1


@dataclass(frozen=True)
class Bounds:
    """Limits of a log; the rows that were written first are deleted first, whatever the stamps of their images.

    Attributes:
        max_bytes: size of tables, index and pictures; 0 for no limit, else at least :data:`MIN_BYTES`.
        max_age_s: time since a row was written, by the clock of this computer; 0 for no limit.
    """

    max_bytes: int = 0
    max_age_s: float = 0.0

    def __post_init__(self) -> None:
        if self.max_bytes and self.max_bytes < MIN_BYTES:
            raise CaptionLogError(f"the maximum size of a log is at least {MIN_BYTES} bytes, not {self.max_bytes}")


class CaptionLog:
    """A log that is open for writing: a context manager, for one thread at a time.

    A row, its picture and its entry in the search index are written in one transaction. If the file was deleted or
    moved, the next transaction begins a new one at its path.

    Attributes:
        new_files: number of times that a new file was begun.
    """

    def __init__(self, path: Path, bounds: Bounds = Bounds()) -> None:  # noqa: B008 # immutable
        """Open or create the file; raises what :func:`smart_caption_ros.caption_log.schema.open_to_write` raises."""
        self.path = path.expanduser()
        self.bounds = bounds
        self.new_files = 0
        self._open()

    def __enter__(self) -> "CaptionLog":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        self._connection.close()

    @property
    def captions(self) -> int:
        return self._one("SELECT coalesce(sum(captions), 0) FROM origin")

    @property
    def used_bytes(self) -> int:
        """Bytes of the file that are in use; the space of deleted rows is reused."""
        pages = self._one("PRAGMA page_count") - self._one("PRAGMA freelist_count")
        return pages * self._one("PRAGMA page_size")

    def append(self, record: "CaptionRecord", picture: bytes | None = None) -> int:
        """Write a caption atomically, and delete old ones if a bound is exceeded.

        Args:
            record: the caption; its image is not written.

        Returns:
            The id of the row.

        Raises:
            CaptionLogError: it cannot be written, for example because the disk is full; the next call may succeed.
        """
        with self._transaction():
            number = self._insert(_row_of(record, picture))
        if self.bounds != Bounds():
            with suppress(CaptionLogError):  # the row is written; the next call deletes
                self.prune()
        return number

    def add(self, records: "Iterable[CaptionRecord]") -> None:
        """Write captions without pictures in one transaction; no bound is applied."""
        with self._transaction():
            for record in records:
                self._insert(_row_of(record))

    def prune(self) -> bool:
        """Delete some of the oldest rows if a bound is exceeded; the newest row stays.

        Returns:
            Whether the log is within its bounds; if not, the next call deletes more.
        """
        for _ in range(_BATCHES_AN_APPEND):
            with self._transaction():
                ids = self._outside_bounds()
                self._connection.executemany("DELETE FROM caption WHERE id = ?", ids)
            if not ids:
                return True
        return False

    def _outside_bounds(self) -> list[tuple[int]]:
        """Return the ids of the oldest rows that exceed a bound, one batch at most."""
        condition, parameters = "", []
        if not (self.bounds.max_bytes and self.used_bytes > self.bounds.max_bytes):
            if not self.bounds.max_age_s:
                return []
            condition, parameters = "WHERE written_ms < ?", [int((time.time() - self.bounds.max_age_s) * _MS_PER_S)]
        first = "SELECT id, written_ms FROM caption WHERE sequence < (SELECT max(sequence) FROM caption)"
        query = f"SELECT id FROM ({first} ORDER BY sequence LIMIT ?) {condition}"
        return self._connection.execute(query, [_DELETED_AT_ONCE, *parameters]).fetchall()

    def _insert(self, row: LogRow) -> int:
        """Write a row under the next free id; few captions have the same millisecond."""
        number, pose = row.id, row.pose
        while self._connection.execute("SELECT 1 FROM caption WHERE id = ?", (number,)).fetchone():
            number += 1
        values = (
            number,
            int(time.time() * _MS_PER_S),
            row.time_ns,
            row.robot,
            row.camera,
            with_breaks(row.text),
            with_breaks(" ".join(row.search_terms)),
            *((None,) * 4 if pose is None else (pose["frame_id"], *pose["position"])),
            json_text(row.values, ensure_ascii=False, separators=(",", ":")),
        )
        self._connection.execute(_INSERT, values)
        if row.picture is not None:
            self._connection.execute("INSERT INTO picture VALUES (?, ?)", (number, row.picture))
        return number

    def _open(self) -> None:
        self._connection = open_to_write(self.path)
        self._file = inode_of(self.path)

    def _follow_path(self) -> None:
        """Begin a new file if the open one was moved or deleted, because readers open the path."""
        if inode_of(self.path) != self._file:
            with suppress(sqlite3.Error):  # completes the moved file, which has lost its write-ahead log
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            self._open()
            self.new_files += 1

    def _one(self, query: str) -> int:
        with self._errors_named("read"):
            return int(self._connection.execute(query).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors_named("written"):
            self._follow_path()
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


def _row_of(record: "CaptionRecord", picture: bytes | None = None) -> LogRow:
    time_ns = min(max(record.time_ns, 0), _MAX_NS)
    return LogRow(time_ns // NS_PER_MS, time_ns, bounded(record.to_json()), picture)
