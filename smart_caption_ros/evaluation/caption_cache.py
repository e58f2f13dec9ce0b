"""A cache of captions on disk, so that a long run continues where it was stopped."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.files import cache_folder

IN_MEMORY = Path(":memory:")
"""SQLite's name of a database without a file."""


class CaptionCacheError(ExpectedError):
    """The cache file cannot be used."""


def default_caption_cache_path() -> Path:
    """Return the default file, in the user's cache folder."""
    return cache_folder() / "captions.sqlite"


class CaptionCache:
    """A SQLite file with captions by model and image.

    :meth:`put` returns after the caption is written, so that a killed process loses no caption. Several processes may
    use one file at a time.

    Args:
        path: created if missing, with its folder; :data:`IN_MEMORY` keeps the captions while the process runs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors_named():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=60, isolation_level=None)
            tables = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if tables not in ([], [("captions",)]):
                raise sqlite3.DatabaseError("it is a database of another program")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS captions (model TEXT, image TEXT, text TEXT NOT NULL, "
                "PRIMARY KEY (model, image)) WITHOUT ROWID"
            )
            self._database.execute("BEGIN IMMEDIATE")  # fails for a file that can only be read
            self._database.execute("ROLLBACK")

    def get(self, model: str, image: str) -> str | None:
        """Return the model's caption of the image; None if there is none."""
        names = (_encodable(model), _encodable(image))
        with self._errors_named():
            row = self._database.execute("SELECT text FROM captions WHERE model = ? AND image = ?", names).fetchone()
        return None if row is None else str(row[0])

    def put(self, model: str, image: str, text: str) -> None:
        """Write a caption, replacing an earlier one."""
        values = (_encodable(model), _encodable(image), text)
        with self._errors_named():
            self._database.execute("INSERT OR REPLACE INTO captions VALUES (?, ?, ?)", values)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise CaptionCacheError(
                f"{self.path}: captions cannot be kept there ({reason}); remove the file, or name another one"
            ) from None


def _encodable(name: str) -> str:
    """Return a name with escape sequences for bytes of file names that are not UTF-8, which SQLite refuses."""
    return name.encode(errors="backslashreplace").decode()
