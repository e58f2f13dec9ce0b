"""Word vectors: the compact table in the package, or a GloVe text file."""

import codecs
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.errors import CoverageError
from smart_caption_ros.files import cache_folder, folder_replaced_atomically, sha256_of_bytes

DEFAULT_TABLE = Path(__file__).resolve().parent / "data" / "word_vectors.npz"
"""The table in the package, made by `recipes/lexicon` of commit 8c43a21."""
_VECTORS, _WORDS, _SOURCE = "vectors.npy", "words.txt", "source.json"


class WordVectors:
    """Word vectors.

    Args:
        rows: (V, D) floating point, possibly memory-mapped.

    Raises:
        ValueError: there is no row for each word.
    """

    def __init__(self, words: Sequence[str], rows: NDArray[Any], name: str) -> None:
        if rows.ndim != 2 or len(rows) != len(words):
            raise ValueError(f"{len(words)} words, vectors of shape {rows.shape}")
        self._index = {word: row for row, word in enumerate(words)}
        self._rows = rows
        self.name = name

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> "WordVectors":
        """Read a table (``.npz``) or a GloVe text file; without a path, the table in the package.

        A text file is converted into the user's cache once, and again after it has changed, and then memory-mapped.
        Raises CoverageError for a file that is missing or malformed.
        """
        chosen = DEFAULT_TABLE if path is None else Path(path)
        if not chosen.is_file():
            raise CoverageError(f"{chosen}: no such file of word vectors; give a GloVe text file, as published")
        return _read_table(chosen) if chosen.suffix == ".npz" else _map_text(chosen)

    @property
    def dimension(self) -> int:
        return int(self._rows.shape[1])

    def mean(self, words: list[str]) -> NDArray[np.float32] | None:
        """Compute the mean of the vectors of the known words, (D,); None if no word is known."""
        rows = [self._index[word] for word in words if word in self._index]
        return self._rows[rows].astype(np.float32).mean(axis=0) if rows else None


def read_glove(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield words and vectors of a GloVe text file; a first line of two counts (word2vec) is skipped.

    Raises CoverageError if a line does not hold a word and as many numbers as the first line.
    """
    try:
        with path.open("rb") as stream:
            yield from _read_lines(path, stream)
    except OSError as error:
        raise CoverageError(f"{path}: the word vectors cannot be read: {error.strerror}") from None


def _read_lines(path: Path, stream: BinaryIO) -> Iterator[tuple[str, NDArray[np.float32]]]:
    dimension = 0
    for number, line in enumerate(stream, 1):
        fields = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").rstrip().split(b" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        dimension = dimension or len(fields) - 1
        try:
            # Some published files have words with spaces: the vector is the end of the line.
            word = b" ".join(fields[:-dimension]).decode("utf-8")
            vector = np.array(fields[-dimension:], dtype=np.float32) if dimension else np.empty(0, np.float32)
        except ValueError:
            word, vector = "", np.empty(0, np.float32)
        if not word or len(vector) == 0 or not np.isfinite(vector).all():
            expected = f"{dimension} numbers" if dimension else "numbers"
            raise CoverageError(f"{path}, line {number}: expected a word and {expected}, as in a GloVe text file")
        yield word, vector


def _read_table(path: Path) -> WordVectors:
    try:
        with np.load(path, allow_pickle=False) as table:
            words = table["words"].tobytes().decode("utf-8").split("\n")
            return WordVectors(words, table["vectors"], table["description"].tobytes().decode("utf-8"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CoverageError(f"{path} is no table of word vectors ({error}); make it again") from None


def _map_text(path: Path) -> WordVectors:
    """Memory-map the conversion of a text file in the cache, which is written first if the file is new or changed."""
    stat, place = path.stat(), str(path.resolve())
    source = {"file": place, "size": stat.st_size, "modified_ns": stat.st_mtime_ns}
    folder = cache_folder() / "word_vectors" / f"{path.name}-{sha256_of_bytes(os.fsencode(place))[:16]}"
    if not _is_conversion_of(folder, source):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with folder_replaced_atomically(folder) as unfinished:
                _write_conversion(path, unfinished, source)
        except OSError as error:
            if not _is_conversion_of(folder, source):  # another process may have written the same conversion
                reason = error.strerror or error
                raise CoverageError(
                    f"{path}: the converted word vectors cannot be kept in {folder}: {reason}"
                ) from None
    try:
        rows = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        return WordVectors((folder / _WORDS).read_text(encoding="utf-8").split("\n"), rows, path.name)
    except (OSError, ValueError) as error:
        raise CoverageError(f"{folder} is damaged ({error}); remove it, and it is made again from {path}") from None


def _is_conversion_of(folder: Path, source: dict[str, Any]) -> bool:
    try:
        return bool(json.loads((folder / _SOURCE).read_text(encoding="utf-8")) == source)
    except (OSError, ValueError):
        return False


def _write_conversion(path: Path, folder: Path, source: dict[str, Any]) -> None:
    words: dict[str, None] = {}
    dimension = 0
    with (folder / "rows").open("wb") as rows:
        for word, vector in read_glove(path):
            if word not in words:  # the first of equal words counts, as in the published readers
                words[word] = None
                dimension = len(vector)
                rows.write(vector.tobytes())
    if not words:
        raise CoverageError(f"{path} holds no word vectors")
    # The header of the .npy file contains the number of rows.
    mapped = np.memmap(folder / "rows", np.float32, "r", shape=(len(words), dimension))
    np.save(folder / _VECTORS, mapped)
    del mapped
    (folder / "rows").unlink()
    (folder / _WORDS).write_text("\n".join(words), encoding="utf-8", newline="\n")
    (folder / _SOURCE).write_text(json.dumps(source), encoding="utf-8")
