"""One image file, or a folder of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import cv2

from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.imaging.encoded_images import opencv_path
from smart_caption_ros.sources.source import Frame, FrameSource, SkippedFrame, SourceError
from smart_caption_ros.text import counted

IMAGE_SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm", ".pfm", ".jp2",
    ".gif", ".hdr", ".avif", ".heic", ".heif",
)  # fmt: skip
"""Suffixes of images. Those that are not read here, such as HEIC, are reported and not left out in silence."""


class ImageFolder(FrameSource):
    """The images of a folder in natural order (image2 before image10), or one image file.

    Files with another suffix, hidden files and sub-folders are ignored; of a file without suffix the content counts.
    """

    def __init__(self, spec: str, *, topic: str | None = None) -> None:
        super().__init__(spec)
        path = Path(spec)
        self._is_folder = path.is_dir()
        if not self._is_folder:
            self._paths = [path]
            return
        try:
            entries = list(path.iterdir())
        except OSError as error:
            raise SourceError(f"cannot read the folder {spec}: {error.strerror}") from error
        self._paths = sorted(filter(is_image_file, entries), key=natural_order)
        if not self._paths:
            raise SourceError(
                f"no images in the folder {spec} (files ending in {', '.join(IMAGE_SUFFIXES)}; "
                "sub-folders are not searched)"
            )

    @classmethod
    def accepts(cls, spec: str) -> bool:
        path = Path(spec)
        if path.is_file():
            return path.suffix.lower() in IMAGE_SUFFIXES or _is_image_by_content(path)
        return bool(spec) and path.is_dir()

    @property
    def description(self) -> str:
        if not self._is_folder:
            return f"image {self.spec}"
        return f"folder {self.spec} ({counted(len(self._paths), 'image')})"

    @property
    def known_length(self) -> int:
        return len(self._paths)

    @property
    def paths(self) -> list[Path]:
        """The image files, in order."""
        return list(self._paths)

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        return str(self._paths[frame.index])

    def _frames(self) -> Iterator[Frame]:
        return self._frames_every(1)

    def _frames_every(self, step: int) -> Iterator[Frame]:
        for index, path in list(enumerate(self._paths))[::step]:
            try:
                image_bgr = read_image(path)
            except ImageError as error:
                if not self._is_folder:
                    raise SourceError(f"cannot read the image {path}: {error}") from error
                self._skip(path.name, index, error)
                continue
            yield Frame(image_bgr, path.name, index)


def natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that compares the numbers in file names as numbers."""
    parts = [part for part in re.split(r"(\d+)", path.name) if part]
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def is_image_file(path: Path) -> bool:
    """Return whether an entry of a folder is an image, readable or not; a link to nothing counts by its name."""
    if path.name.startswith(".") or path.is_dir():
        return False
    return path.suffix.lower() in IMAGE_SUFFIXES if path.suffix else path.is_file() and _is_image_by_content(path)


def _is_image_by_content(path: Path) -> bool:
    try:
        with opencv_path(path) as name:
            return bool(cv2.haveImageReader(name))
    except OSError:
        return False
