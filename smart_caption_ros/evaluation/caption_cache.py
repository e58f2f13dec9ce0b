"""Captions that a model has made, kept on disk, so that a long run goes on where it was stopped."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from smart_caption_ros.files import cache_folder


class KeptCaptionsError(Exception):
    """The file cannot be used; the message is one clear sentence."""


def default_kept_captions_path() -> Path:
    """The file in the user's cache."""
    return cache_folder() / "captions.sqlite"


class KeptCaptions:
    """A small SQLite file: captions by model and image. What :meth:`keep` was given is in it when it returns.

    Several processes may use one file at once. A process that is killed loses nothing that it had kept.

    Args:
        path: made where it is missing, with its folder.

    Raises:
        KeptCaptionsError: the file cannot be made, or is none of these.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS captions (model TEXT, image TEXT, text TEXT NOT NULL, "
                "PRIMARY KEY (model, image)) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise self._failure(error) from None

    def get(self, model: str, image: str) -> str | None:
        """The caption that the model gave the image; None where none was kept."""
        try:
            row = self._database.execute(
                "SELECT text FROM captions WHERE model = ? AND image = ?", (model, image)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._failure(error) from None
        return None if row is None else str(row[0])

    def keep(self, model: str, image: str, text: str) -> None:
        """Keep a caption in the place of an earlier one."""
        try:
            self._database.execute("INSERT OR REPLACE INTO captions VALUES (?, ?, ?)", (model, image, text))
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def close(self) -> None:
        self._database.close()

    def _failure(self, error: Exception) -> KeptCaptionsError:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        return KeptCaptionsError(
            f"{self.path}: captions cannot be kept there ({reason}); remove the file, or name another one"
        )
