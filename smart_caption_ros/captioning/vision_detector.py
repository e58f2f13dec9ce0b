"""The objects that a bundle's vision graph finds in the pass that makes the visual tokens."""

from __future__ import annotations

import numpy as np

from smart_caption_ros.captioning.bundle import VISION_GRAPH, VISION_LAYOUT, Bundle
from smart_caption_ros.captioning.errors import BundleError
from smart_caption_ros.captioning.vision import Vision, VisionOutput
from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.candidates import Candidates, filter_candidates, to_objects
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.imaging import check_image

MAX_CANDIDATES = 2000
"""Boxes of a vision graph that are looked at, the surest first; at the scores of a robot there are some dozens."""


class VisionDetector:
    """The objects that the vision graph of a bundle finds in the same pass that makes the tokens."""

    layout = VISION_LAYOUT

    def __init__(self, bundle: Bundle, vision: Vision, minimum_score: float | None = None) -> None:
        """
        Args:
            bundle: whose detector has the layout ``vision``.
            vision: of that bundle.
            minimum_score: objects below it are left out; None takes what the bundle says.
        """
        assert bundle.detector is not None
        score = bundle.detector.minimum_score if minimum_score is None else minimum_score
        if not 0 <= score <= 1:
            raise ValueError(f"minimum_score must lie between 0 and 1, not {score}")
        self.path = bundle.path / VISION_GRAPH
        self.minimum_score = score
        self.class_names = tuple(normalise(name) for name in bundle.class_names)
        self._vision = vision

    def detect(self, image_bgr: np.ndarray) -> tuple[DetectedObject, ...]:
        """As :meth:`Detector.detect`, in a pass of its own."""
        check_image(image_bgr)
        height, width = image_bgr.shape[:2]
        return self.objects(self._vision.run(self._vision.preprocess(image_bgr)), width, height)

    def objects(self, seen: VisionOutput, width: int, height: int) -> tuple[DetectedObject, ...]:
        """What was found in the one frame of a batch, whose size in pixels is given; order and limits as `detect`.

        Raises:
            BundleError: the graph's arrays do not fit the classes of the bundle.
        """
        boxes, scores = seen.boxes, seen.class_scores
        assert boxes is not None
        assert scores is not None
        cells = boxes.shape[1]
        if boxes.shape != (1, cells, 4) or scores.shape != (1, cells, len(self.class_names)):
            raise BundleError(
                f"{self.path} gave boxes {list(boxes.shape)} and class_scores {list(scores.shape)} for one frame and "
                f"{len(self.class_names)} classes; export the bundle again"
            )
        sure = scores[0].astype(np.float32, copy=False)
        places, class_ids = np.nonzero(sure >= self.minimum_score)
        best = np.argsort(-sure[places, class_ids], kind="stable")[:MAX_CANDIDATES]
        places, class_ids = places[best], class_ids[best]
        size = np.array([width, height] * 2, np.float32)
        found = Candidates(boxes[0, places].astype(np.float32) * size, sure[places, class_ids], class_ids)
        kept = filter_candidates(found, width, height, self.minimum_score, self.class_names)
        return to_objects(kept, self.class_names, suppress=True)
