"""Find captions in a log: by words, time, camera, robot and place."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.logged_caption import (
    LoggedCaption,
    LoggedPose,
    nouns_from_json,
    objects_from_json,
)
from smart_caption_ros.caption_log.query_words import expression_of
from smart_caption_ros.caption_log.schema import open_to_read
from smart_caption_ros.caption_log.store import COLUMNS
from smart_caption_ros.caption_log.tags import camera_tag, cells_around, robot_tag
from smart_caption_ros.caption_log.word_beginnings import WordBeginnings

NEWEST, BEST = "newest", "best"
ORDERS = (NEWEST, BEST)
MAX_LIMIT = 100_000
BEST_OF = 1000
"""The order "best" sorts the newest rows that match, so many."""

_NS_PER_MS, _MS_PER_S = 1_000_000, 1000
_STEPS_BETWEEN_CLOCKS = 10_000
_BEGIN, _END = "\x01", "\x02"  # around the words found; no text of a log has control characters
# Of BM25 (Robertson and Zaragoza, 2009); captions have about ten words.
_K1, _B, _MEAN_WORDS = 1.2, 0.75, 10.0


@dataclass(frozen=True)
class Near:
    """A place: x, y and z in metres (without z any height), the radius around it, and the coordinate frame.

    The frame may be empty where all poses of the log have the same one.
    """

    x: float
    y: float
    z: float | None = None
    radius_m: float = 1.0
    frame_id: str = ""

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.x, self.y, self.z or 0.0))):
            raise CaptionLogError("the coordinates of a place must be finite numbers")
        if not 0 < self.radius_m < math.inf:
            raise CaptionLogError(f"the radius around a place must be a positive number, not {self.radius_m:g}")


@dataclass(frozen=True)
class Query:
    """What to look for; all conditions hold together.

    Attributes:
        words: see :func:`smart_caption_ros.caption_log.query_words.expression_of`; empty for any caption.
        since_ns: earliest time, nanoseconds since 1970; None for no bound.
        until_ns: latest time.
        camera: name of the camera; empty for any.
        robot: name of the robot; empty for any.
        near: where the robot was; None for anywhere.
        order: "newest", or "best": those with the words side by side first, then by BM25, of the newest
            :data:`BEST_OF` that match. BM25's inverse document frequency is left out: it is the same for all of them,
            as each has all the words.
        limit: maximum number of rows.
    """

    words: str = ""
    since_ns: int | None = None
    until_ns: int | None = None
    camera: str = ""
    robot: str = ""
    near: Near | None = None
    order: str = NEWEST
    limit: int = 20

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise CaptionLogError(f"the order is one of {', '.join(ORDERS)}, not {self.order!r}")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise CaptionLogError(f"the number of captions is between 1 and {MAX_LIMIT}, not {self.limit}")


@dataclass(frozen=True)
class Origin:
    """How many rows of the log a camera gave; the frame of their poses is empty for those without a pose."""

    robot: str
    camera: str
    pose_frame: str
    captions: int


@dataclass(frozen=True)
class Overview:
    """A log in numbers: rows by origin, times of the first and last row (None in an empty log), and pictures."""

    origins: tuple[Origin, ...]
    first_ms: int | None
    last_ms: int | None

    @property
    def captions(self) -> int:
        """Number of rows."""
        return sum(origin.captions for origin in self.origins)


class LogReader:
    """A log that is open for reading, also while it is written; a context manager for use from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            CaptionLogError: see :func:`smart_caption_ros.caption_log.schema.open_to_read`.
        """
        self.path = path.expanduser()
        self._connection = open_to_read(path)
        self._beginnings = WordBeginnings(self._connection)

    def __enter__(self) -> LogReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def overview(self) -> Overview:
        """Count the rows."""
        origins = self._rows("SELECT robot, camera, pose_frame, captions FROM origin ORDER BY robot, camera", ())
        first, last = self._rows("SELECT (SELECT min(id) FROM caption), (SELECT max(id) FROM caption)", ())[0]
        return Overview(tuple(Origin(*row) for row in origins), first, last)

    def find(self, query: Query, *, with_pictures: bool = False, timeout_s: float = math.inf) -> list[LoggedCaption]:
        """Return the captions that match, in the order of the query.

        Args:
            query: what to look for.
            with_pictures: whether to read the pictures.
            timeout_s: maximum time.

        Raises:
            CaptionLogError: the query contradicts itself or the log, the log is damaged, or the time is over.
        """
        try:
            words = expression_of(query.words, self._beginnings.expression)
        except sqlite3.Error as error:
            raise CaptionLogError(f"the caption log {self.path} cannot be read: {error}") from error
        tags, conditions, parameters = self._conditions(query)
        index = " AND ".join(filter(None, [words, *tags]))
        ids = "caption.id BETWEEN ? AND ?"
        low = -(2**63) if query.since_ns is None else -(-query.since_ns // _NS_PER_MS)
        high = 2**63 - 1 if query.until_ns is None else query.until_ns // _NS_PER_MS
        marked = "NULL"
        sources = "caption"
        values: list[object] = []
        if index:
            # A cross join keeps SQLite from turning the order around.
            sources = "caption_search CROSS JOIN caption ON caption.id = caption_search.rowid"
            ids = "caption_search MATCH ? AND caption_search.rowid BETWEEN ? AND ?"
            values.append(index)
        best = bool(words) and query.order == BEST
        if best:
            marked = f"highlight(caption_search, 0, '{_BEGIN}', '{_END}')"
        order = "caption_search.rowid" if index else "caption.id"
        statement = (
            f"SELECT {', '.join(f'caption.{name}' for name in COLUMNS)}, {marked} FROM {sources} "
            f"WHERE {' AND '.join([ids, *conditions])} ORDER BY {order} DESC LIMIT ?"
        )
        values += [low, high, *parameters, max(query.limit, BEST_OF) if best else query.limit]
        rows = self._rows(statement, values, timeout_s)
        if best:
            rows = sorted(rows, key=lambda row: _relevance(row[-1]), reverse=True)[: query.limit]
        found = [_from_row(row) for row in rows]
        return [self._with_picture(row) for row in found] if with_pictures else found

    def all_rows(self) -> Iterable[LoggedCaption]:
        """Yield all rows with their pictures, the oldest first.

        Raises:
            CaptionLogError: the log is damaged.
        """
        columns = ", ".join(f"caption.{name}" for name in COLUMNS)
        statement = (
            f"SELECT {columns}, jpeg FROM caption LEFT JOIN picture ON picture.id = caption.id ORDER BY caption.id"
        )
        try:
            for row in self._connection.execute(statement):
                yield _from_row(row, picture=row[-1])
        except sqlite3.Error as error:
            raise CaptionLogError(f"the caption log {self.path} cannot be read: {error}") from error

    def _conditions(self, query: Query) -> tuple[list[str], list[str], list[object]]:
        """Return the expressions for the tags, the exact conditions, and the values of these."""
        tags: list[str] = []
        conditions: list[str] = []
        values: list[object] = []
        if query.camera:
            tags.append(f'tags : "{camera_tag(query.camera)}"')
            conditions.append("caption.camera = ?")
            values.append(query.camera)
        if query.robot:
            tags.append(f'tags : "{robot_tag(query.robot)}"')
            conditions.append("caption.robot = ?")
            values.append(query.robot)
        if (near := query.near) is not None:
            if cells := cells_around(near.x, near.y, near.radius_m):
                tags.append("tags : ({})".format(" OR ".join(f'"{cell}"' for cell in cells)))
            conditions.append("caption.pose_frame = ?")
            values.append(self._frame_of(near))
            squares = ["(x - ?) * (x - ?)", "(y - ?) * (y - ?)", "(z - ?) * (z - ?)"]
            place = [each for each in (near.x, near.y, near.z) if each is not None]
            conditions.append(f"{' + '.join(squares[: len(place)])} <= ?")
            values += [value for each in place for value in (each, each)] + [near.radius_m**2]
        return tags, conditions, values

    def _frame_of(self, near: Near) -> str:
        frames = sorted({origin.pose_frame for origin in self.overview().origins} - {""})
        if near.frame_id in frames or (near.frame_id and not frames):
            return near.frame_id
        if not frames:
            raise CaptionLogError(f"no caption in {self.path} has a pose: a search by place finds nothing")
        if near.frame_id:
            raise CaptionLogError(f"no pose in {self.path} is in the frame {near.frame_id!r}: {', '.join(frames)}")
        if len(frames) > 1:
            raise CaptionLogError(f"the poses are in several frames, name one of them: {', '.join(frames)}")
        return frames[0]

    def _with_picture(self, row: LoggedCaption) -> LoggedCaption:
        pictures = self._rows("SELECT jpeg FROM picture WHERE id = ?", (row.id,))
        return replace(row, picture=pictures[0][0]) if pictures else row

    def _rows(self, statement: str, values: Iterable[object], timeout_s: float = math.inf) -> list[tuple[Any, ...]]:
        end_s = time.monotonic() + timeout_s
        limited = timeout_s < math.inf
        if limited:
            self._connection.set_progress_handler(lambda: time.monotonic() > end_s, _STEPS_BETWEEN_CLOCKS)
        try:
            return self._connection.execute(statement, tuple(values)).fetchall()
        except sqlite3.Error as error:
            if "interrupted" in str(error):
                raise CaptionLogError(
                    f"the search took longer than {timeout_s:g} s: give more words, or a time since which to look"
                ) from error
            raise CaptionLogError(f"the caption log {self.path} cannot be read: {error}") from error
        finally:
            if limited:
                self._connection.set_progress_handler(None, 0)


def _from_row(row: tuple[Any, ...], picture: bytes | None = None) -> LoggedCaption:
    value = dict(zip(COLUMNS, row, strict=False))
    frame, x, y, z, qx, qy, qz, qw = (value.pop(name) for name in ("pose_frame", "x", "y", "z", "qx", "qy", "qz", "qw"))
    return LoggedCaption(
        objects=objects_from_json(value.pop("objects")),
        nouns=nouns_from_json(value.pop("nouns")),
        pose=None if frame is None else LoggedPose(frame, (x, y, z), (qx, qy, qz, qw)),
        picture=picture,
        **value,
    )


def _relevance(marked: str) -> tuple[int, float]:
    """Rate a text with marks around the words found: pairs side by side, and BM25's weight of the words."""
    hits = marked.count(_BEGIN)
    words = marked.count(" ") + 1
    weight = hits * (_K1 + 1) / (hits + _K1 * (1 - _B + _B * words / _MEAN_WORDS))
    return marked.count(f"{_END} {_BEGIN}"), weight
