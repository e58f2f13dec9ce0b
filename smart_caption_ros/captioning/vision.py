"""Visual tokens and detections of a frame: resizing on the host, then one pass of the vision graph of the bundle."""

from dataclasses import dataclass

import numpy as np

from smart_caption_ros.captioning.bundle import VISION_GRAPH, VISION_LAYOUT, Bundle, BundleError, VisionBundle
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.detection.detections import Candidates, ClassScores, DetectorOutput
from smart_caption_ros.engines import Engine, run_batch
from smart_caption_ros.imaging.preprocessing import Preprocessing

MAX_CANDIDATES = 2000
"""Candidates that are kept before non-maximum suppression, those with the highest scores; usually there are dozens."""


@dataclass(frozen=True)
class VisionOutput:
    """Output of the vision graph for B frames."""

    tokens: np.ndarray
    """(B, N, token width) float32."""
    boxes: np.ndarray | None = None
    """(B, A, 4) float32 xyxy, fractions of the frame, may extend beyond it; None where the graph has no detector."""
    class_scores: np.ndarray | None = None
    """(B, A, classes) float32, from 0 to 1; None where the graph has no detector."""

    def frame(self, place: int) -> "VisionOutput":
        """Return the output for one of the frames, B = 1."""
        arrays = (self.tokens, self.boxes, self.class_scores)
        return VisionOutput(*(None if array is None else array[place : place + 1] for array in arrays))  # type: ignore[arg-type]


def grid_boxes(rows: int, columns: int, before: int = 0) -> np.ndarray:
    """Compute the boxes of visual tokens, (before + rows * columns, 4) float32 xyxy, fractions of the graph's input.

    Args:
        rows, columns: size of the grid; its cells are in row order.
        before: number of tokens before the grid, which stand for the whole input.
    """
    ys, xs = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    edges = np.stack([xs, ys, xs + 1, ys + 1], axis=-1).reshape(-1, 4).astype(np.float32)
    whole = np.tile(np.array([0, 0, 1, 1], np.float32), (before, 1))
    return np.concatenate([whole, edges / np.array([columns, rows] * 2, np.float32)])


def token_boxes(boxes: np.ndarray, preprocessing: Preprocessing, width: int, height: int) -> np.ndarray:
    """Place the boxes of :func:`grid_boxes` in a frame of width x height, (N, 4) float32 xyxy pixels.

    The box of a token before the grid is all that the vision graph sees of the frame.
    """
    left, top, right, bottom = preprocessing.region(width, height)
    size = np.array([right - left, bottom - top] * 2, np.float32)
    return boxes * size + np.array([left, top] * 2, np.float32)


class Vision:
    """The vision graph of a bundle, with the preprocessing of its training.

    A frame is resized, and cropped where the manifest says so, on the host, because that is several times faster on a
    CPU than a Resize operator. Channel order and normalisation are in the graph.
    """

    def __init__(self, bundle: VisionBundle, engine: Engine) -> None:
        """Load the graph; raises EngineError, and BundleError where it does not have the tensors of a vision graph."""
        self._preprocessing = bundle.preprocessing
        self._graph = engine.load(bundle.path / VISION_GRAPH, bundle.read_graph(VISION_GRAPH))
        self.mode = self._graph.mode
        if self._graph.input_names != ("image_bgr",) or "tokens" not in self._graph.output_names:
            raise BundleError(
                f"{bundle.path / VISION_GRAPH} maps {self._graph.input_names} to {self._graph.output_names} "
                "instead of image_bgr to tokens; export the bundle again"
            )
        rows, columns = bundle.grid
        wanted = (bundle.tokens_before_grid + rows * columns, bundle.token_width)
        for output in self._graph.outputs:
            pairs = zip(output.shape[1:], wanted, strict=False)
            if output.name == "tokens" and any(given not in (None, size) for given, size in pairs):
                raise BundleError(
                    f"{bundle.path / VISION_GRAPH} gives {output} instead of {wanted[0]} tokens of width {wanted[1]} "
                    "for a frame, which the manifest says; export the bundle again"
                )
        self._grid_boxes = grid_boxes(rows, columns, bundle.tokens_before_grid)
        self._grid_boxes[: bundle.tokens_before_grid] = np.nan
        detects = bundle.detector is not None and bundle.detector.layout == VISION_LAYOUT
        self._outputs = ("tokens", "boxes", "class_scores") if detects else ("tokens",)
        if lacking := [name for name in self._outputs if name not in self._graph.output_names]:
            raise BundleError(
                f"{bundle.path / VISION_GRAPH} has no output {lacking[0]}, though the manifest says that it finds "
                "objects; export the bundle again"
            )

    def preprocess(self, image_bgr: np.ndarray) -> np.ndarray:
        """Resize a frame, (H, W, 3) uint8 BGR, to the input of the graph, (1, height, width, 3) uint8."""
        return np.ascontiguousarray(self._preprocessing.apply(image_bgr))[None]

    def tokens(self, preprocessed: np.ndarray) -> np.ndarray:
        """Compute the visual tokens, (B, N, token width) float32, of (B, height, width, 3) uint8."""
        return self.run(preprocessed).tokens

    def run(self, preprocessed: np.ndarray) -> VisionOutput:
        """Compute tokens and raw detections of (B, height, width, 3) uint8 in one pass."""
        outputs = run_batch(self._graph, {"image_bgr": preprocessed})
        return VisionOutput(*(outputs[name] for name in self._outputs))

    def boxes(self, width: int, height: int) -> np.ndarray:
        """Compute the boxes of the visual tokens, (N, 4) float32 xyxy pixels of a frame of the given size.

        The boxes of tokens before the grid are NaN, because these tokens stand for no region.
        """
        return token_boxes(self._grid_boxes, self._preprocessing, width, height)


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
