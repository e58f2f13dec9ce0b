"""Sequences in ACVR's layout as a frame source with ground truth objects; four of them ship with the package."""

import logging
from collections.abc import Iterator
from pathlib import Path

from smart_caption_ros.sources.acvr import LABELS, AcvrSequences
from smart_caption_ros.sources.image_folder import is_image_file
from smart_caption_ros.sources.json_files import read_json
from smart_caption_ros.sources.source import Frame, FrameSource, SkippedFrame, SourceError

logger = logging.getLogger(__name__)

SAMPLE = "sample:household"


def sample_sequences_path() -> Path:
    """Return the root of the household sequences in the package; README.txt there describes how they were made."""
    return Path(__file__).resolve().parent.parent / "sequences" / "household"


class Sequences(FrameSource):
    """The frames of all sequences of a root, or of one sequence; "sample:household" names those in the package."""

    knows_objects = True

    def __init__(self, spec: str) -> None:
        super().__init__(spec)
        self._data = AcvrSequences(sample_sequences_path() if spec == SAMPLE else Path(spec))
        self.known_length = sum(self._data.lengths.values())

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return spec == SAMPLE or (bool(spec) and _has_sequences(Path(spec)))

    @property
    def description(self) -> str:
        what = "the household sequences in the package" if self.spec == SAMPLE else f"sequences {self.spec}"
        return f"{what} ({len(self._data.lengths)} with {self.known_length} frames)"

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        return f"{self.spec}#{frame.name}"

    def _frames(self, step: int) -> Iterator[Frame]:
        self._data.issues = self._data.opening_issues()
        start = 0
        for sequence, length in self._data.lengths.items():
            # Indices continue from one sequence to the next: they count the frames of the whole source.
            for frame in self._data.sequence_frames(sequence, step, first=-start % step):
                yield from self._read(frame.image_path, frame.name, start + frame.index, frame.objects)
            start += length
        for sentence in self._data.issues.sentences():
            self.notes.append(f"{self.spec}: {sentence}")
            logger.warning(self.notes[-1])


def _has_sequences(folder: Path) -> bool:
    """Return whether a folder holds sequences, and not photographs with some other labels.json."""
    try:
        if (folder / LABELS).is_file():
            return _are_labels(folder / LABELS)
        if not folder.is_dir() or any(map(is_image_file, folder.iterdir())):
            return False
        return any(_are_labels(path) for path in folder.glob(f"[!.]*/{LABELS}"))
    except OSError:
        return False


def _are_labels(path: Path) -> bool:
    """Return whether a file begins like ACVR's labels: with a frame number and a JSON object."""
    try:
        content = read_json(path)
    except SourceError:
        return False
    frames = [item for item in content.items() if not item[0].startswith("_")] if isinstance(content, dict) else []
    return bool(frames) and frames[0][0].isdecimal() and isinstance(frames[0][1], dict)
