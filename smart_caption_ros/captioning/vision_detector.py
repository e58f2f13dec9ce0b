"""Detections of a bundle's vision graph, from the pass that computes the visual tokens."""

import numpy as np

from smart_caption_ros.captioning.bundle import VISION_GRAPH, VISION_LAYOUT, Bundle, BundleError
from smart_caption_ros.captioning.vision import VisionOutput
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.detection.detections import Candidates, ClassScores, DetectorOutput

MAX_CANDIDATES = 2000
"""Candidates that are kept before non-maximum suppression, those with the highest scores; usually there are dozens."""


class VisionDetector:
    """The detector inside the vision graph of a bundle."""

    layout = VISION_LAYOUT

    def __init__(self, bundle: Bundle, minimum_score: float | None = None) -> None:
        """``minimum_score``, 0 to 1: lowest score of an object; None takes that of the bundle."""
        assert bundle.detector is not None
        score = bundle.detector.minimum_score if minimum_score is None else minimum_score
        if not 0 <= score <= 1:
            raise ValueError(f"minimum_score must lie between 0 and 1, not {score}")
        self.path = bundle.path / VISION_GRAPH
        self.minimum_score = score
        self.class_names = tuple(normalise(name) for name in bundle.class_names)

    def detections(self, output: VisionOutput, width: int, height: int) -> DetectorOutput:
        """Decode the detections of one frame, width x height pixels, from the output of its vision graph.

        Raises BundleError where the graph's arrays do not fit the classes of the bundle.
        """
        boxes, scores = output.boxes, output.class_scores
        assert boxes is not None
        assert scores is not None
        cells = boxes.shape[1]
        if boxes.shape != (1, cells, 4) or scores.shape != (1, cells, len(self.class_names)):
            raise BundleError(
                f"{self.path} gave boxes {list(boxes.shape)} and class_scores {list(scores.shape)} for one frame and "
                f"{len(self.class_names)} classes; export the bundle again"
            )
        frame_scores = scores[0].astype(np.float32, copy=False)
        places, class_ids = np.nonzero(frame_scores >= self.minimum_score)
        best = np.argsort(-frame_scores[places, class_ids], kind="stable")[:MAX_CANDIDATES]
        places, class_ids = places[best], class_ids[best]
        size = np.array([width, height] * 2, np.float32)
        candidates = Candidates(boxes[0, places].astype(np.float32) * size, frame_scores[places, class_ids], class_ids)
        return DetectorOutput(
            candidates.to_objects(width, height, self.minimum_score, self.class_names, suppress=True),
            ClassScores.of_classes(frame_scores.max(axis=0), self.class_names),
        )
