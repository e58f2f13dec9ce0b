"""Find captions in a log: by words, time, camera, robot and place."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.logged_caption import COLUMNS, LoggedCaption, one_line
from smart_caption_ros.caption_log.schema import open_to_read

NEWEST, BEST = "newest", "best"
ORDERS = (NEWEST, BEST)
MAX_LIMIT = 100_000
BEST_OF = 1000
"""Number of newest matching rows that are ranked when the order is "best"."""
MAX_WORDS = 32

_NS_PER_MS = 1_000_000
_LOWEST_ID, _HIGHEST_ID = -(2**63), 2**63 - 1
_STEPS_BETWEEN_CLOCKS = 10_000
_ROWS_AT_ONCE = 500
_MARKS = ("\x01", "\x02")  # texts of the log have no control characters
_COLUMNS = ", ".join(f"caption.{name}" for name in COLUMNS)
_PART = re.compile(r'"([^"]*)"?|(\S+)')


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

    @classmethod
    def parse(cls, text: str, radius_m: float = 1.0, frame_id: str = "") -> Near:
        """Read "x,y" or "x,y,z" as a person writes it.

        Raises:
            CaptionLogError: it is something else.
        """
        try:
            x, y, *z = map(float, text.split(","))
            (height,) = z or (None,)
        except ValueError as error:
            raise CaptionLogError(f"{text!r} is not a place: write x,y or x,y,z in metres") from error
        return cls(x, y, height, radius_m, frame_id)


@dataclass(frozen=True)
class Query:
    """What to look for; all conditions hold together.

    Attributes:
        words: words that all have to occur, in any form; `"quoted words"` occur side by side, `cup*` begins a word.
            Empty for any caption.
        since_ns: earliest time, nanoseconds since 1970; None for no bound.
        until_ns: latest time.
        camera: name of the camera; empty for any.
        robot: name of the robot; empty for any.
        near: where the robot was; None for anywhere.
        order: "newest", or "best": of the newest :data:`BEST_OF` that match, by SQLite's bm25(), to which words side by
            side contribute as a phrase.
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
class Match:
    """Why a row was found.

    Attributes:
        text: the caption in pieces, each with whether it is a word that was looked for.
        nouns: lemmas that were looked for, and whose words in the text are others ("person" for "people").
        classes: classes of detected objects that were looked for.
    """

    text: tuple[tuple[str, bool], ...]
    nouns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What was found beside words of the text, for a person: "the object cup"; else empty."""
        return ", ".join(
            [*(f"the object {name}" for name in self.classes), *(f"the noun {lemma}" for lemma in self.nouns)]
        )


@dataclass(frozen=True)
class Origin:
    """How many rows of the log a camera gave; the frame of their poses is empty for those without a pose."""

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
        origins = self._rows("SELECT robot, camera, pose_frame, captions FROM origin ORDER BY robot, camera")
        first, last = self._rows("SELECT (SELECT min(id) FROM caption), (SELECT max(id) FROM caption)")[0]
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
        statement, values = self._statement(query)
        rows = [self._row(row[: len(COLUMNS)]) for row in self._rows(statement, values, timeout_s)]
        return [self._with_picture(row) for row in rows] if with_pictures else rows

    def row(self, number: int) -> LoggedCaption | None:
        """Return a row with its picture; None if there is none of this id."""
        if abs(number) > _HIGHEST_ID:
            return None
        rows = self._rows(f"SELECT {_COLUMNS} FROM caption WHERE id = ?", (number,))
        return self._with_picture(self._row(rows[0])) if rows else None

    def with_pictures(self, rows: Sequence[LoggedCaption]) -> frozenset[int]:
        """Return the ids of those rows that have a picture, without reading it."""
        ids = [row.id for row in rows]
        found = self._rows(f"SELECT id FROM picture WHERE id IN ({_places(ids)})", ids)
        return frozenset(number for (number,) in found)

    def matches(self, query: Query, rows: Sequence[LoggedCaption]) -> list[Match]:
        """Return why each of the rows that a query has found matches."""
        stems, beginnings = _match_expressions(query.words, side_by_side=False)
        marked: dict[int | None, list[tuple[str, str]]] = {row.id: [] for row in rows}
        for table, expressions in (("caption_search", stems), ("caption_words", beginnings)):
            for start in range(0, len(rows) if expressions else 0, _ROWS_AT_ONCE):
                ids = [row.id or 0 for row in rows[start : start + _ROWS_AT_ONCE]]
                # One pass over what the search has read, too; reading the index for each row takes ten times as long.
                statement = (
                    f"SELECT rowid, highlight({table}, 0, ?, ?), highlight({table}, 1, ?, ?) FROM {table} "
                    f"WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? AND +rowid IN ({_places(ids)})"
                )
                values = (*_MARKS, *_MARKS, " AND ".join(expressions), min(ids), max(ids), *ids)
                for number, text, terms in self._rows(statement, values):
                    marked[number].append((text, terms))
        return [_match(row, marked[row.id]) for row in rows]

    def all_rows(self) -> Iterator[LoggedCaption]:
        """Yield all rows with their pictures, the oldest first.

        Raises:
            CaptionLogError: the log is damaged.
        """
        statement = (
            f"SELECT {_COLUMNS}, jpeg FROM caption LEFT JOIN picture ON picture.id = caption.id ORDER BY caption.id"
        )
        try:
            for *values, picture in self._connection.execute(statement):
                yield self._row(values, picture)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _statement(self, query: Query) -> tuple[str, list[object]]:
        """Translate a query to SQL and the values of its parameters.

        The rows are read from the newest one backwards, from an index if there are words, a camera or a robot, and
        reading stops at the limit.
        """
        is_best = query.order == BEST
        stems, beginnings = _match_expressions(query.words, side_by_side=is_best)
        conditions: list[str] = []
        values: list[object] = []
        for column, given in (("camera", query.camera), ("robot", query.robot)):
            if name := one_line(given):  # as the log has it
                conditions.append(f"caption.{column} = ?")
                values.append(name)
                if any(map(str.isalnum, name)):  # the index has no words of other names
                    stems.append(f"{column} : {_quoted(name)}")
        if query.near is not None:
            self._add_place(query.near, conditions, values)
        table, expression = "caption", " AND ".join(stems)
        if stems and beginnings:
            # The plus sign keeps SQLite from reading these rows first, which may be many, and sorting them.
            conditions.append("+caption.id IN (SELECT rowid FROM caption_words WHERE caption_words MATCH ?)")
            values.append(" AND ".join(beginnings))
        elif beginnings:
            expression = " AND ".join(beginnings)
        source, key = "caption", "caption.id"
        if expression:
            table = "caption_search" if stems else "caption_words"
            key = f"{table}.rowid"
            # A cross join keeps SQLite from turning the order of the tables around.
            source = f"{table} CROSS JOIN caption ON caption.id = {key}"
            conditions.append(f"{table} MATCH ?")
            values.append(expression)
        conditions.append(f"{key} BETWEEN ? AND ?")
        values.append(_LOWEST_ID if query.since_ns is None else -(-query.since_ns // _NS_PER_MS))
        values.append(_HIGHEST_ID if query.until_ns is None else query.until_ns // _NS_PER_MS)
        statement = f"FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {key} DESC LIMIT ?"
        if not (is_best and expression):
            return f"SELECT {_COLUMNS} {statement}", [*values, query.limit]
        newest = f"SELECT {_COLUMNS}, bm25({table}) AS relevance {statement}"
        return f"SELECT * FROM ({newest}) ORDER BY relevance, id DESC LIMIT ?", [*values, BEST_OF, query.limit]

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

    def _row(self, values: Sequence[Any], picture: bytes | None = None) -> LoggedCaption:
        try:
            return LoggedCaption.from_values(values, picture)
        except ValueError as error:
            raise CaptionLogError(f"the caption {values[0]} in {self.path} is damaged: {error}") from error

    def _with_picture(self, row: LoggedCaption) -> LoggedCaption:
        pictures = self._rows("SELECT jpeg FROM picture WHERE id = ?", (row.id,))
        return replace(row, picture=pictures[0][0]) if pictures else row

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
    """Return the places of so many values in a statement."""
    return ", ".join("?" * len(values))


def _match(row: LoggedCaption, marked: Sequence[tuple[str, str]]) -> Match:
    """Translate what `highlight` returned for the text and for the search terms of a row, once for each index."""
    in_text = _marked_characters(len(row.text), [text for text, _ in marked])
    pieces = groupby(zip(row.text, in_text, strict=True), key=lambda character: character[1])
    text = tuple(("".join(letter for letter, _ in letters), is_match) for is_match, letters in pieces)
    in_terms = _marked_characters(len(" ".join(row.search_terms)), [terms for _, terms in marked])
    found, start = set(), 0
    for term in row.search_terms:
        if any(in_terms[start : start + len(term)]):
            found.add(term)
        start += len(term) + 1
    classes = dict.fromkeys(item.class_name for item in row.objects)
    words = [any(is_marked for _, is_marked in letters) for letters in _words(row.text, in_text)]
    nouns = dict.fromkeys(
        noun.lemma
        for noun in row.nouns
        if noun.word_index is None or not any(words[noun.word_index : noun.word_index + noun.word_count])
    )
    return Match(text, tuple(filter(found.__contains__, nouns)), tuple(filter(found.__contains__, classes)))


def _words(text: str, is_marked: Sequence[bool]) -> Iterator[list[tuple[str, bool]]]:
    """Yield the letters of each word between spaces, each with whether it is marked."""
    letters = zip(text, is_marked, strict=True)
    return (list(word) for is_space, word in groupby(letters, key=lambda item: item[0].isspace()) if not is_space)


def _marked_characters(length: int, marked: Iterable[str]) -> list[bool]:
    """Return which characters of a text are marked in any of its versions with marks."""
    is_marked = [False] * length
    for version in marked:
        start = 0
        for number, piece in enumerate(re.split(f"[{''.join(_MARKS)}]", version)):
            end = start + len(piece)
            if number % 2:
                is_marked[start:end] = [True] * len(piece)
            start = end
    return is_marked[:length]


def _match_expressions(words: str, *, side_by_side: bool) -> tuple[list[str], list[str]]:
    """Translate a person's words to expressions of FTS5, which never are a syntax error.

    Args:
        words: see :class:`Query`.
        side_by_side: whether the words also are phrases of neighbours, which match nothing more and count for bm25().

    Returns:
        Expressions for the index of stems, and for the index of words as they are; all of them have to match.

    Raises:
        CaptionLogError: there is a text without any word in it, or there are too many words.
    """
    stems: list[str] = []
    beginnings: list[str] = []
    for quoted, word in _PART.findall(words):
        content = quoted or word.replace('"', " ").rstrip("*")
        if any(map(str.isalnum, content)):  # FTS5 would find nothing for a phrase without words
            (beginnings if word.endswith("*") else stems).append(content)
    count = len(stems) + len(beginnings)
    if words.strip() and not count:
        raise CaptionLogError(f"there is no word in the search {words.strip()!r}: give words such as red cup")
    if count > MAX_WORDS:
        raise CaptionLogError(f"a search has at most {MAX_WORDS} words, not {count}")
    found = [_quoted(stem) for stem in stems]
    if side_by_side and len(stems) > 1:
        phrases = [_quoted(f"{word} {following}") for word, following in pairwise(stems)]
        found[0] = f"({' OR '.join([found[0], *phrases])})"
    return [f"{{text search_terms}} : {match}" for match in found], [f"{_quoted(word)} *" for word in beginnings]


def _quoted(text: str) -> str:
    """Return a text as a string of FTS5, which ends at a null character."""
    return '"{}"'.format("".join(c if c.isprintable() else " " for c in text).replace('"', '""'))
