"""The file of the caption log, an SQLite database: its tables, its version, and how it is opened."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.files import xdg_folder

APPLICATION_ID = 0x53434C47
"""`PRAGMA application_id` of a caption log: "SCLG"."""

VERSION = 5
"""`PRAGMA user_version` of a log; files of other versions are refused."""

_TABLES = """
    -- id: time of the image in milliseconds since 1970, moved to the next free one: the order of the rows is that of
    -- time, and a search since a time is a range of ids.
    CREATE TABLE caption (
        id INTEGER PRIMARY KEY,
        sequence INTEGER NOT NULL UNIQUE,  -- order in which rows were written and will be deleted
        written_ms INTEGER NOT NULL,       -- when that was, milliseconds since 1970
        time_ns INTEGER NOT NULL,          -- of the image
        robot TEXT NOT NULL,
        camera TEXT NOT NULL,
        text TEXT NOT NULL,                -- with a zero-width space between letters of scripts that have no spaces
        search_terms TEXT NOT NULL,        -- lemmas of the nouns and classes of the objects, found beside the text
        pose_frame TEXT,                   -- NULL without a pose
        x REAL, y REAL, z REAL,
        record TEXT NOT NULL               -- JSON of the caption record
    );
    -- A table of its own, so that reading captions reads no pictures.
    CREATE TABLE picture (id INTEGER PRIMARY KEY, jpeg BLOB NOT NULL);
    -- Numbers of rows, because SQLite would have to read all rows to count them.
    CREATE TABLE origin (
        robot TEXT NOT NULL,
        camera TEXT NOT NULL,
        pose_frame TEXT NOT NULL,          -- empty for captions without a pose
        captions INTEGER NOT NULL,
        PRIMARY KEY (robot, camera, pose_frame)
    ) WITHOUT ROWID;
    -- Stems of English words ("cups" finds "cup"), in lower case and without accents; marks belong to their letters.
    CREATE VIRTUAL TABLE caption_search USING fts5(
        text, search_terms, camera, robot, content='caption', content_rowid='id', prefix='2',
        tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
    );
    -- Positions of the robot in metres, of whatever frame.
    CREATE VIRTUAL TABLE place USING rtree(id, x0, x1, y0, y1);
    CREATE TRIGGER caption_inserted AFTER INSERT ON caption BEGIN
        INSERT INTO caption_search(rowid, text, search_terms, camera, robot)
            VALUES (new.id, new.text, new.search_terms, new.camera, new.robot);
        INSERT INTO place SELECT new.id, new.x, new.x, new.y, new.y WHERE new.pose_frame IS NOT NULL;
        INSERT INTO origin VALUES (new.robot, new.camera, coalesce(new.pose_frame, ''), 1)
            ON CONFLICT DO UPDATE SET captions = captions + 1;
    END;
    CREATE TRIGGER caption_deleted AFTER DELETE ON caption BEGIN
        INSERT INTO caption_search(caption_search, rowid, text, search_terms, camera, robot)
            VALUES ('delete', old.id, old.text, old.search_terms, old.camera, old.robot);
        DELETE FROM place WHERE id = old.id;
        DELETE FROM picture WHERE id = old.id;
        UPDATE origin SET captions = captions - 1
            WHERE robot = old.robot AND camera = old.camera AND pose_frame = coalesce(old.pose_frame, '');
        DELETE FROM origin WHERE captions <= 0
            AND robot = old.robot AND camera = old.camera AND pose_frame = coalesce(old.pose_frame, '');
    END;
"""

BUSY_TIMEOUT_S = 5.0
_JOURNAL_BYTES = 4 << 20  # the write-ahead log is cut to this size after it was copied into the file
_ATTEMPTS, _PAUSE_S = 50, 0.02


class CaptionLogError(ExpectedError):
    """The log cannot be opened, written, searched or read."""


def default_log_path() -> Path:
    """Return `$XDG_DATA_HOME/smart_caption_ros/captions.db`, by default in `~/.local/share`."""
    return xdg_folder("XDG_DATA_HOME", ".local/share") / "captions.db"


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open a log that other processes may write as well, or create it with its folder.

    Raises CaptionLogError if the file is not a log, has another version, or cannot be written.
    """
    # Absolute, because SQLite gives "file:name" and ":memory:" a meaning of their own.
    path = path.expanduser().absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptionLogError(f"{path}: the folder of the log cannot be created: {error.strerror}") from error
    _check_is_file(path)
    with _errors_named(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            version = _checked_version(connection, path)
            if _set_wal(connection) != "wal":
                raise CaptionLogError(
                    f"{path}: the file system has no shared memory for SQLite's write-ahead log (a network folder?): "
                    "put the log on a local disk"
                )
            # A killed process loses nothing; a loss of power may cost the last captions.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
            if version == 0:
                _create_tables(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a log, which another process may be writing, without changing it.

    Raises CaptionLogError if there is no such file, or if it is not a log or has another version.
    """
    path = path.expanduser()
    if not path.exists():
        raise CaptionLogError(f"{path}: there is no such log; `smart-caption log record` or caption_log_node writes it")
    _check_is_file(path)
    address = f"{path.resolve().as_uri()}?mode=ro"
    with _errors_named(path):
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            try:
                version = _checked_version(connection, path)
            except sqlite3.OperationalError:
                # On a read-only medium SQLite cannot create its shared memory beside the file.
                if path.with_name(f"{path.name}-wal").exists():
                    raise
                connection.close()
                connection = sqlite3.connect(f"{address}&immutable=1", uri=True, check_same_thread=False)
                version = _checked_version(connection, path)
            if version == 0:
                raise CaptionLogError(f"{path} is not a caption log: it has no tables")
        except BaseException:
            connection.close()
            raise
    return connection


def _check_is_file(path: Path) -> None:
    """Raise CaptionLogError for a folder, a device or a pipe, which SQLite would open or wait for."""
    if path.exists() and not path.is_file():
        raise CaptionLogError(f"{path} is not a caption log: it is not a file")


def _checked_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a log, 0 for an empty file."""
    # A single statement, because another process may write between two.
    application, version, tables = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
        "FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise CaptionLogError(f"{path} is an SQLite database of another program, not a caption log")
    if application == APPLICATION_ID and version != VERSION:
        raise CaptionLogError(
            f"{path} has version {version} and this program knows {VERSION}: read it with the program that wrote it, "
            "and name another file here"
        )
    return int(version)


def _set_wal(connection: sqlite3.Connection) -> str:
    """Switch to the write-ahead log and return the mode; retry, because SQLite's timeout does not apply to this."""
    for attempt in range(_ATTEMPTS):
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE_S)
    raise AssertionError("unreachable")


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables in an empty file, in one transaction, so that no file is half a log."""
    options = {option for (option,) in connection.execute("PRAGMA compile_options")}
    if missing := {"ENABLE_FTS5", "ENABLE_RTREE"} - options:
        raise CaptionLogError(
            f"the SQLite {sqlite3.sqlite_version} of this Python lacks {' and '.join(sorted(missing))}, which the "
            "caption log needs: use the Python of the distribution"
        )
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _checked_version(connection, path) == 0:  # else another process has created them meanwhile
            for statement in _statements(_TABLES):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """Split a script; `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        reason = "it is not an SQLite database" if "not a database" in str(error) else str(error)
        raise CaptionLogError(f"{path} cannot be opened as a caption log: {reason}") from error
