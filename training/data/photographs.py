"""The photographs of a data set: in files, in a zip, or in those of several sources."""

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, decode_image_bytes, read_image
from training.errors import DataError

_UNREADABLE = (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
"""Errors of a zip's member that is missing, damaged, or (RuntimeError) encrypted or compressed in an unknown way."""
ImageReader: TypeAlias = Callable[[str], NDArray[np.uint8]]
"""Reads the image of an id, (H, W, 3) uint8 BGR; raises DataError."""


def read_photograph(path: Path, image: str) -> NDArray[np.uint8]:
    """Read a photograph, (H, W, 3) uint8 BGR.

    Raises:
        DataError: the file is missing or not an image; names it, the image id and the reason.
    """
    try:
        return read_image(path)
    except ImageError as error:
        raise DataError(f"{path}, image {image}: {error}") from None


def visible_files(folder: Path) -> list[Path]:
    """List the files of a folder and its sub-folders, in the order of their paths.

    Hidden files and folders, as those in which notebooks and file managers keep copies, are left out.
    """
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


class Photographs(Protocol):
    """Photographs by image id. Methods raise :class:`DataError` for one that is missing or broken, naming its file."""

    def check(self, images: Iterable[str]) -> None:
        """Check that photographs exist; the error says how many are missing."""
        ...

    def key(self, image: str) -> str:
        """Return a text that changes with the content of a photograph, by which computed features are found again."""
        ...

    def read(self, image: str) -> NDArray[np.uint8]:
        """Read a photograph, (H, W, 3) uint8 BGR."""
        ...


@dataclass(frozen=True)
class PhotographFiles(Photographs):
    """Photographs in files of their own."""

    paths: Mapping[str, Path]
    """By image id."""

    def check(self, images: Iterable[str]) -> None:
        if missing := [image for image in images if not self.paths[image].is_file()]:
            raise DataError(
                f"{self.paths[missing[0]]}, image {missing[0]}: no such file; photographs of {len(missing)} images are "
                "missing: set `photographs` to the folder that the file names are relative to"
            )

    def key(self, image: str) -> str:
        path = self.paths[image]
        try:
            status = path.stat()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        return f"{path} {status.st_size} {status.st_mtime_ns}"

    def read(self, image: str) -> NDArray[np.uint8]:
        return read_photograph(self.paths[image], image)


@dataclass(frozen=True)
class JoinedPhotographs(Photographs):
    """Photographs of several sources, whose ids are ``<source>/<id in the source>``; errors name the source."""

    sources: Mapping[str, Photographs]

    def check(self, images: Iterable[str]) -> None:
        by_source: dict[str, list[str]] = {}
        for image in dict.fromkeys(images):
            source, _, own = image.partition("/")
            by_source.setdefault(source, []).append(own)
        for source, of_source in by_source.items():
            with naming_source(source):
                self.sources[source].check(of_source)

    def key(self, image: str) -> str:
        source, _, own = image.partition("/")
        with naming_source(source):
            return self.sources[source].key(own)

    def read(self, image: str) -> NDArray[np.uint8]:
        source, _, own = image.partition("/")
        with naming_source(source):
            return self.sources[source].read(own)


@contextmanager
def naming_source(name: str) -> Iterator[None]:
    """Let an error of a source begin with its name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"source {name}: {error}") from None


@dataclass(frozen=True)
class PhotographArchive(Photographs):
    """Photographs in a zip by file name; the zip is opened when it is first used."""

    path: Path

    @property
    def names(self) -> list[str]:
        """Names of all members, in the order of the archive."""
        return self._archive.namelist()

    def check(self, images: Iterable[str]) -> None:
        present = set(self.names)
        if missing := [name for name in images if name not in present]:
            raise DataError(f"{self.path}: {len(missing)} photographs are missing, for example {missing[0]}")

    def key(self, image: str) -> str:
        try:
            member = self._archive.getinfo(image)
        except KeyError as error:
            raise DataError(f"{self.path}: {image} cannot be read ({error})") from None
        return f"{self.path.parent.name}/{image} {member.file_size} {member.CRC:08x}"

    def read(self, image: str) -> NDArray[np.uint8]:
        try:
            return decode_image_bytes(self.read_encoded(image))
        except ImageError as error:
            raise DataError(f"{self.path}: {image}: {error}") from None

    def read_encoded(self, name: str) -> bytes:
        """Read the file of a photograph without decoding it."""
        try:
            return self._archive.read(name)
        except _UNREADABLE as error:
            raise DataError(f"{self.path}: {name} cannot be read ({error})") from None

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.path} cannot be read ({error})") from None
