"""Reading photographs of a data set, from files and from zip archives."""

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, decode_image_bytes, read_image
from training.data.caption_dataset import CaptionDataset
from training.errors import DataError


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


def file_key(path: Path) -> str:
    """Return a text that changes when a file is replaced.

    Raises:
        DataError: the file is missing.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    return f"{path} {status.st_size} {status.st_mtime_ns}"


class ArchivedPhotographs(CaptionDataset, Protocol):
    """A data set whose photographs are in a zip, by file name."""

    @property
    def archive(self) -> "PhotographArchive":
        """The photographs."""
        ...

    def check_photographs(self, images: Iterable[str]) -> None:
        self.archive.check(images)

    def photograph_key(self, name: str) -> str:
        return self.archive.key(name)

    def read_image(self, name: str) -> NDArray[np.uint8]:
        return self.archive.read(name)


@dataclass(frozen=True)
class PhotographArchive:
    """Photographs in a zip; the file is opened when it is first used.

    Methods raise :class:`DataError` for an archive or photograph that is missing or broken, naming both.
    """

    path: Path

    @property
    def names(self) -> list[str]:
        """Names of all members, in the order of the archive."""
        return self._archive.namelist()

    def check(self, names: Iterable[str]) -> None:
        """Check that photographs exist; the error says how many are missing."""
        present = set(self.names)
        if missing := [name for name in names if name not in present]:
            raise DataError(f"{self.path}: {len(missing)} photographs are missing, for example {missing[0]}")

    def key(self, name: str) -> str:
        """Return a text that changes with the content of a photograph."""
        try:
            member = self._archive.getinfo(name)
        except KeyError as error:
            raise DataError(f"{self.path}: {name} cannot be read ({error})") from None
        return f"{self.path.parent.name}/{name} {member.file_size} {member.CRC:08x}"

    def read(self, name: str) -> NDArray[np.uint8]:
        """Read a photograph, (H, W, 3) uint8 BGR."""
        try:
            return decode_image_bytes(self.read_encoded(name))
        except ImageError as error:
            raise DataError(f"{self.path}: {name}: {error}") from None

    def read_encoded(self, name: str) -> bytes:
        """Read the file of a photograph without decoding it."""
        try:
            return self._archive.read(name)
        except (KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.path}: {name} cannot be read ({error})") from None

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.path} cannot be read ({error})") from None
