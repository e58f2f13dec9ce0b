"""Photographs in scikit-image's wheel, in the public domain or without known restrictions."""

import importlib.util
from pathlib import Path

from smart_caption_ros.sources.image_folder import ImageFolder
from smart_caption_ros.sources.source import Frame, FrameSource, SkippedFrame, SourceError

_SPEC = "sample:photographs"
_FILES = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png",
    "rocket.jpg",
)  # fmt: skip


class SamplePhotographs(ImageFolder):
    """Eight photographs, four of them in colour: "sample:photographs"."""

    def __init__(self, spec: str) -> None:
        FrameSource.__init__(self, spec)
        if spec != _SPEC:
            raise SourceError(f"there is no sample {spec!r}; there are sample:household and {_SPEC}")
        # Not imported: the import takes a second, and only the files are needed.
        module = importlib.util.find_spec("skimage")
        if module is None or module.origin is None:
            raise SourceError("the sample photographs come with scikit-image: pip install scikit-image")
        self.paths = [Path(module.origin).with_name("data") / name for name in _FILES]
        self.known_length = len(self.paths)

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return spec.startswith("sample:")  # the last source for samples: it also refuses unknown names

    @property
    def description(self) -> str:
        return f"{len(_FILES)} sample photographs of scikit-image"

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        return f"{self.spec}#{frame.name}"
