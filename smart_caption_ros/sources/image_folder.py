"""One image file, a folder of them, or the sample photographs."""

import importlib.util
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
"""Suffixes of images. Images that cannot be read here, such as HEIC, are reported instead of ignored."""
_JPEG_STREAMS = (".mjpeg", ".mjpg")  # videos that begin as a photograph does
_SAMPLE = "sample:photographs"  # in the public domain or without known restrictions
_SAMPLE_FILES = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png",
    "rocket.jpg",
)  # fmt: skip


class ImageFolder(FrameSource):
    """The images of a folder in natural order (image2 before image10), or one image file.

    Files with another suffix, hidden files and sub-folders are ignored; a file without suffix is judged by its content.
    """

    def __init__(self, spec: str) -> None:
        super().__init__(spec)
        path = Path(spec)
        self.paths, self.known_length = [path], 1
        if not path.is_dir():
            return
        try:
            entries = list(path.iterdir())
        except OSError as error:
            raise SourceError(f"cannot read the folder {spec}: {error.strerror}") from error
        self.paths = sorted(filter(is_image_file, entries), key=natural_order)
        self.known_length = len(self.paths)
        if not self.paths:
            raise SourceError(
                f"no images in the folder {spec} (files ending in {', '.join(IMAGE_SUFFIXES)}; "
                "sub-folders are not searched)"
            )

    @classmethod
    def accepts(cls, spec: str) -> bool:
        path = Path(spec)
        if path.is_file():
            suffix = path.suffix.lower()
            return suffix in IMAGE_SUFFIXES or (suffix not in _JPEG_STREAMS and _is_image_by_content(path))
        return bool(spec) and path.is_dir()

    @property
    def description(self) -> str:
        return f"folder {self.spec} ({counted(len(self.paths), 'image')})" if self._is_folder else f"image {self.spec}"

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        return str(self.paths[frame.index])

    @property
    def _is_folder(self) -> bool:
        return self.paths != [Path(self.spec)]

    def _frames(self, step: int) -> Iterator[Frame]:
        if not self._is_folder:
            try:
                yield Frame(read_image(self.paths[0]), self.paths[0].name, 0)
            except ImageError as error:
                raise SourceError(f"cannot read the image {self.spec}: {error}") from error
            return
        for index in range(0, len(self.paths), step):
            yield from self._read(self.paths[index], self.paths[index].name, index)


class SamplePhotographs(ImageFolder):
    """Eight photographs, four of them in colour, in scikit-image's wheel: "sample:photographs"."""

    def __init__(self, spec: str) -> None:
        FrameSource.__init__(self, spec)
        if spec != _SAMPLE:
            raise SourceError(f"there is no sample {spec!r}; there are sample:household and {_SAMPLE}")
        # Not imported: the import takes a second, and only the files are needed.
        module = importlib.util.find_spec("skimage")
        if module is None or module.origin is None:
            raise SourceError("the sample photographs come with scikit-image: pip install scikit-image")
        self.paths = [Path(module.origin).with_name("data") / name for name in _SAMPLE_FILES]
        self.known_length = len(self.paths)

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return spec.startswith("sample:")  # also unknown names, which the constructor refuses

    @property
    def description(self) -> str:
        return f"{len(_SAMPLE_FILES)} sample photographs of scikit-image"

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        return f"{self.spec}#{frame.name}"


def natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that compares the numbers in file names as numbers."""
    parts = [part for part in re.split(r"(\d+)", path.name) if part]
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def is_image_file(path: Path) -> bool:
    """Return whether an entry of a folder is an image, readable or not; a broken link is judged by its name."""
    if path.name.startswith(".") or path.is_dir():
        return False
    return path.suffix.lower() in IMAGE_SUFFIXES if path.suffix else path.is_file() and _is_image_by_content(path)


def _is_image_by_content(path: Path) -> bool:
    try:
        with opencv_path(path) as name:
            return bool(cv2.haveImageReader(name))
    except OSError:
        return False
