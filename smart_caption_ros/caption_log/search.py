"""Find captions in a log: by words, time, camera, robot and place."""

import json
import math
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from smart_caption_ros.caption_log.row import NS_PER_MS, LogRow, one_line
from smart_caption_ros.caption_log.schema import CaptionLogError, open_to_read
from smart_caption_ros.caption_log.times import parse_time
from smart_caption_ros.caption_log.words import MARKS, SearchWords, begins, marked_characters, quoted

NEWEST, BEST = "newest", "best"
ORDERS = (NEWEST, BEST)
MAX_LIMIT = 100_000
BEST_OF = 1000
"""Number of newest matching rows that are ranked when the order is "best"."""

_LOWEST_ID, _HIGHEST_ID = -(2**63), 2**63 - 1
_STEPS_BETWEEN_CLOCKS = 10_000
_ROWS_AT_ONCE = 500
_COLUMNS = "caption.id, caption.time_ns, caption.record"


@dataclass(frozen=True)
class Near:
    """A place: x, y and z in metres (without z any height), the radius around it, and the coordinate frame.

    The frame may be empty if all poses of the log have the same one.
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

    @classmethod
    def parse(cls, text: str, radius_m: float = 1.0, frame_id: str = "") -> "Near":
        """Read "x,y" or "x,y,z" as a person writes it; raises CaptionLogError for anything else."""
        try:
            x, y, *z = map(float, text.split(","))
            (height,) = z or (None,)
        except ValueError as error:
            raise CaptionLogError(f"{text!r} is not a place: write x,y or x,y,z in metres") from error
        return cls(x, y, height, radius_m, frame_id)


@dataclass(frozen=True)
class Query:
    """The conditions of a search, all of which have to hold, and the order of its results.

    Attributes:
        words: words that all have to occur, in any form; `"quoted words"` occur side by side, `cup*` begins a word.
            Empty for any caption.
        since_ns: earliest time, nanoseconds since 1970; None for no limit.
        until_ns: latest time, as `since_ns`.
        min_calibrated_confidence: lowest calibrated confidence, 0 to 1; above 0, captions without one are not found.
        order: "newest", or "best": the newest :data:`BEST_OF` that match, sorted by SQLite's bm25(), in which words
            that stand side by side also count as a phrase.
        limit: maximum number of captions.
    """

    words: str = ""
    since_ns: int | None = None
    until_ns: int | None = None
    camera: str = ""
    robot: str = ""
    near: Near | None = None
    min_calibrated_confidence: float = 0.0
    order: str = NEWEST
    limit: int = 20

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise CaptionLogError(f"the order is one of {', '.join(ORDERS)}, not {self.order!r}")
        if not 0 <= self.min_calibrated_confidence <= 1:
            raise CaptionLogError(
                f"the minimum calibrated confidence is between 0 and 1, not {self.min_calibrated_confidence:g}"
            )
        if not 1 <= self.limit <= MAX_LIMIT:
            raise CaptionLogError(f"the number of captions is between 1 and {MAX_LIMIT}, not {self.limit}")

    @classmethod
    def parse(
        cls, *, since: str = "", until: str = "", near: str = "", radius_m: float = 2.0, frame: str = "", **fields: Any
    ) -> "Query":
        """Parse times by :func:`parse_time` and a place by :meth:`Near.parse`; empty texts set no condition.

        ``fields``: the other fields. Raises CaptionLogError for a value that is malformed or out of range.
        """
        return cls(
            since_ns=parse_time(since) if since else None,
            until_ns=parse_time(until) if until else None,
            near=Near.parse(near, radius_m, frame) if near else None,
            **fields,
        )


@dataclass(frozen=True)
class Highlights:
    """Why a row was found.

    Attributes:
        text: pieces of the caption, each with whether the search found it.
        nouns: lemmas that the search found and that differ from their words in the text ("person" for "people").
        classes: classes of detected objects that the search found.
    """

    text: tuple[tuple[str, bool], ...]
    nouns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What was found beside words of the text, for a person: "the object cup"; empty if nothing was."""
        return ", ".join(
            [*(f"the object {name}" for name in self.classes), *(f"the noun {lemma}" for lemma in self.nouns)]
        )


@dataclass(frozen=True)
class Origin:
    """Number of rows of one camera whose poses are in one frame; the frame is empty for rows without a pose."""

    robot: str
    camera: str
    pose_frame: str
    captions: int


@dataclass(frozen=True)
class Overview:
    """Numbers of rows by origin, and the times of the first and last row (None in an empty log)."""

    origins: tuple[Origin, ...]
    first_ms: int | None
    last_ms: int | None

    @property
    def captions(self) -> int:
        return sum(origin.captions for origin in self.origins)


class LogReader:
    """A log that is open for reading, also while it is written: a context manager, for one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file; raises what :func:`smart_caption_ros.caption_log.schema.open_to_read` raises."""
        self.path = path.expanduser()
        self._connection = open_to_read(path)
        self._connection.create_function("begins", 2, begins, deterministic=True)

    def __enter__(self) -> "LogReader":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def overview(self, query: Query | None = None) -> Overview:
        """Count the captions that match, ignoring the limit of the query; without a query, all captions."""
        if query is None or query == Query(limit=query.limit, order=query.order):
            origins = self._rows("SELECT robot, camera, pose_frame, captions FROM origin ORDER BY robot, camera")
            first, last = self._rows("SELECT (SELECT min(id) FROM caption), (SELECT max(id) FROM caption)")[0]
            return Overview(tuple(Origin(*row) for row in origins), first, last)
        source, values = self._source(query, SearchWords(query.words).expressions())
        found = self._rows(
            "SELECT caption.robot, caption.camera, coalesce(pose_frame, ''), count(*), min(caption.id), "
            f"max(caption.id) FROM {source} GROUP BY 1, 2, 3 ORDER BY 1, 2",
            values,
        )
        times = [ms for *_, first, last in found for ms in (first, last)]
        return Overview(tuple(Origin(*row[:4]) for row in found), min(times, default=None), max(times, default=None))

    def find(self, query: Query, *, with_pictures: bool = False, timeout_s: float = math.inf) -> list[LogRow]:
        """Return the captions that match, in the order of the query.

        Raises:
            CaptionLogError: the query does not fit the log, the log is damaged, or the search took too long.
        """
        statement, values = self._statement(query)
        return [self._row(*values, with_picture=with_pictures) for values in self._rows(statement, values, timeout_s)]

    def row(self, number: int) -> LogRow | None:
        """Return the row of an id, with its picture; None if there is no such row."""
        if abs(number) > _HIGHEST_ID:
            return None
        rows = self._rows(f"SELECT {_COLUMNS} FROM caption WHERE id = ?", (number,))
        return self._row(*rows[0], with_picture=True) if rows else None

    def with_pictures(self, rows: Sequence[LogRow]) -> frozenset[int]:
        """Return the ids of the rows that have a picture, without reading the pictures."""
        ids = [row.id for row in rows]
        found = self._rows(f"SELECT id FROM picture WHERE id IN ({_places(ids)})", ids)
        return frozenset(number for (number,) in found)

    def highlights(self, query: Query, rows: Sequence[LogRow]) -> list[Highlights]:
        """Return for each row that a query found why it matches."""
        words = SearchWords(query.words)
        marked: dict[int, tuple[str, str]] = {}
        expression = " AND ".join(words.expressions()[: len(words.phrases)])
        for start in range(0, len(rows) if expression else 0, _ROWS_AT_ONCE):
            ids = [row.id for row in rows[start : start + _ROWS_AT_ONCE]]
            # One pass over the matches of the index; a query for each row takes ten times as long.
            statement = (
                "SELECT rowid, highlight(caption_search, 0, ?, ?), highlight(caption_search, 1, ?, ?) "
                "FROM caption_search WHERE caption_search MATCH ? AND rowid BETWEEN ? AND ? "
                f"AND +rowid IN ({_places(ids)})"
            )
            values = (*MARKS, *MARKS, expression, min(ids), max(ids), *ids)
            marked |= {number: (text, terms) for number, text, terms in self._rows(statement, values)}
        return [_highlights(row, words, *marked.get(row.id, ("", ""))) for row in rows]

    def all_rows(self) -> Iterator[LogRow]:
        """Yield all rows with their pictures, the oldest first."""
        statement = (
            f"SELECT {_COLUMNS}, jpeg FROM caption LEFT JOIN picture ON picture.id = caption.id ORDER BY caption.id"
        )
        try:
            for values in self._connection.execute(statement):
                yield self._row(*values)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _statement(self, query: Query) -> tuple[str, list[object]]:
        """Translate a query to SQL and the values of its parameters; SQLite reads from the newest row to the limit."""
        is_best = query.order == BEST
        expressions = SearchWords(query.words).expressions(side_by_side=is_best)
        source, values = self._source(query, expressions)
        key = "caption_search.rowid" if source.startswith("caption_search") else "caption.id"
        statement = f"FROM {source} ORDER BY {key} DESC LIMIT ?"
        if not (is_best and expressions):
            return f"SELECT {_COLUMNS} {statement}", [*values, query.limit]
        newest = f"SELECT {_COLUMNS}, bm25(caption_search) AS relevance {statement}"
        ranked = f"SELECT id, time_ns, record FROM ({newest}) ORDER BY relevance, id DESC LIMIT ?"
        return ranked, [*values, BEST_OF, query.limit]

    def _source(self, query: Query, expressions: Sequence[str]) -> tuple[str, list[object]]:
        """Return the tables and conditions of a query, and the values of its parameters.

        The rows come from the full-text index if the query has words, a camera or a robot.
        """
        matches = list(expressions)
        conditions: list[str] = []
        values: list[object] = []
        for column, given in (("camera", query.camera), ("robot", query.robot)):
            if name := one_line(given):  # as the log stores it
                conditions.append(f"caption.{column} = ?")
                values.append(name)
                if any(map(str.isalnum, name)):  # other names have no words in the index
                    matches.append(f"{column} : {quoted(name)}")
        if query.near is not None:
            self._add_place(query.near, conditions, values)
        if query.min_calibrated_confidence:
            conditions.append("json_extract(caption.record, '$.calibrated_confidence') >= ?")
            values.append(query.min_calibrated_confidence)
        source, key = "caption", "caption.id"
        if matches:
            key = "caption_search.rowid"
            # A cross join fixes the order in which SQLite reads the tables.
            source = f"caption_search CROSS JOIN caption ON caption.id = {key}"
            conditions.append("caption_search MATCH ?")
            values.append(" AND ".join(matches))
        for beginning in SearchWords(query.words).beginnings:
            conditions.append("begins(caption.text || ' ' || caption.search_terms, ?)")
            values.append(" ".join(beginning))
        conditions.append(f"{key} BETWEEN ? AND ?")
        values.append(_LOWEST_ID if query.since_ns is None else -(-query.since_ns // NS_PER_MS))
        values.append(_HIGHEST_ID if query.until_ns is None else query.until_ns // NS_PER_MS)
        return f"{source} WHERE {' AND '.join(conditions)}", values

    def _add_place(self, near: Near, conditions: list[str], values: list[object]) -> None:
        """Append the conditions for a place: its square in the R*Tree, the frame, and the exact distance."""
        conditions.append("caption.id IN (SELECT id FROM place WHERE x1 >= ? AND x0 <= ? AND y1 >= ? AND y0 <= ?)")
        values += [near.x - near.radius_m, near.x + near.radius_m, near.y - near.radius_m, near.y + near.radius_m]
        conditions.append("caption.pose_frame = ?")
        values.append(self._frame_of(near))
        centre = {"x": near.x, "y": near.y} | ({} if near.z is None else {"z": near.z})
        conditions.append(f"{' + '.join(f'({axis} - ?) * ({axis} - ?)' for axis in centre)} <= ?")
        values += [value for value in centre.values() for _ in range(2)] + [near.radius_m**2]

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

    def _row(
        self, number: int, time_ns: int, record: str, picture: bytes | None = None, *, with_picture: bool = False
    ) -> LogRow:
        if with_picture:
            ((picture,),) = self._rows("SELECT jpeg FROM picture WHERE id = ?", (number,)) or [(None,)]
        try:
            row = LogRow(number, time_ns, json.loads(record), picture)
            _ = row.text, row.camera, row.robot, row.pose, row.search_terms
        except (ValueError, KeyError, TypeError) as error:
            raise CaptionLogError(f"the caption {number} in {self.path} is damaged: {error}") from error
        return row

    def _rows(
        self, statement: str, values: Iterable[object] = (), timeout_s: float = math.inf
    ) -> list[tuple[Any, ...]]:
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
            raise self._unreadable(error) from error
        finally:
            if limited:
                self._connection.set_progress_handler(None, 0)

    def _unreadable(self, error: sqlite3.Error) -> CaptionLogError:
        return CaptionLogError(f"the caption log {self.path} cannot be read: {error}")


def _places(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _highlights(row: LogRow, words: SearchWords, marked_text: str, marked_terms: str) -> Highlights:
    """Convert the results of FTS5's `highlight` for the text and the search terms of a row."""
    text, joined = row.text, " ".join(row.search_terms)
    in_text, in_terms = marked_characters(text, marked_text), marked_characters(joined, marked_terms)
    words.mark_beginnings(text, in_text)
    words.mark_beginnings(joined, in_terms)
    pieces = groupby(zip(text, in_text, strict=True), key=lambda character: character[1])
    found, start = set(), 0
    for term in row.search_terms:
        if any(in_terms[start : start + len(term)]):
            found.add(term)
        start += len(term) + 1
    nouns = (noun["lemma"] for noun in row.values["nouns"] if not _is_marked(noun["noun"], text, in_text))
    return Highlights(
        tuple(("".join(letter for letter, _ in letters), is_match) for is_match, letters in pieces),
        tuple(filter(found.__contains__, dict.fromkeys(nouns))),
        tuple(filter(found.__contains__, row.classes)),
    )


def _is_marked(noun: str, text: str, is_marked: Sequence[bool]) -> bool:
    place = re.search(rf"\b{re.escape(noun)}\b", text)
    return place is not None and any(is_marked[place.start() : place.end()])
