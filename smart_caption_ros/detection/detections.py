"""What a detector finds in a frame: objects, and how sure it is of each class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.class_names import NO_OBJECTS, normalise


@dataclass(frozen=True)
class ClassScores:
    """The highest score of each class in a frame."""

    scores: Mapping[str, float]
    """0 to 1, by normalised class name."""
    complete: bool
    """Whether all classes of the detector are in it, with scores however low; False if it has those of objects that
    were reported, so that nothing is known of others."""

    @classmethod
    def of_objects(cls, objects: Iterable[DetectedObject]) -> ClassScores:
        """Take the scores of reported objects."""
        best: dict[str, float] = {}
        for detected in objects:
            name = normalise(detected.class_name)
            best[name] = max(best.get(name, 0.0), detected.score)
        return cls(best, complete=False)

    @classmethod
    def of_classes(cls, highest: NDArray[np.float32], class_names: Sequence[str]) -> ClassScores:
        """Take the scores of all classes of a detector.

        Args:
            highest: (C,), limited to 0 to 1 here; NaN counts as 0.
            class_names: normalised, C names; those that stand for no object are left out.
        """
        limited = np.clip(np.nan_to_num(highest, nan=0.0), 0, 1).tolist()
        best: dict[str, float] = {}
        for name, score in zip(class_names, limited, strict=True):
            if name not in NO_OBJECTS:
                best[name] = max(best.get(name, 0.0), score)
        return cls(best, complete=True)


@dataclass(frozen=True)
class Detections:
    """The output of a detector for a frame."""

    objects: tuple[DetectedObject, ...]
    """With at least the detector's minimum score, highest first."""
    class_scores: ClassScores
    """Of all classes, also below the minimum score."""
