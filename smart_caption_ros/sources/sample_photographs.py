"""Photographs in scikit-image's wheel, in the public domain or without known restrictions."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.sources.source import Frame, FrameSource, SkippedFrame, SourceError

_SPEC = "sample:photographs"
_FILES = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png",
    "rocket.jpg",
)  # fmt: skip


class SamplePhotographs(FrameSource):
    """Eight photographs, four of them in colour: "sample:photographs"."""

    def __init__(self, spec: str, *, topic: str | None = None) -> None:
        super().__init__(spec)
        if spec != _SPEC:
            raise SourceError(f"there is no sample {spec!r}; there are sample:household and {_SPEC}")
        # Not imported: the import takes a second, and only the files are needed.
        module = importlib.util.find_spec("skimage")
        if module is None or module.origin is None:
            raise SourceError("the sample photographs come with scikit-image: pip install scikit-image")
        self._folder = Path(module.origin).parent / "data"

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return spec.startswith("sample:")  # the last source for samples: it also refuses unknown names

    @property
    def description(self) -> str:
        return f"{len(_FILES)} sample photographs of scikit-image"

    @property
    def known_length(self) -> int:
        return len(_FILES)

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        return f"{self.spec}#{frame.name}"

    def _frames(self) -> Iterator[Frame]:
        for index, name in enumerate(_FILES):
            try:
                image_bgr = read_image(self._folder / name)
            except ImageError as error:
                self._skip(name, index, error)
                continue
            yield Frame(image_bgr, name, index)
