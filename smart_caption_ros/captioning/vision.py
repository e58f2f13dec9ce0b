"""From a frame to visual tokens: resizing on the host, everything else in the bundle's vision graph."""

from dataclasses import dataclass

import numpy as np

from smart_caption_ros.captioning.bundle import VISION_GRAPH, VISION_LAYOUT, Bundle
from smart_caption_ros.captioning.errors import BundleError
from smart_caption_ros.engines import Engine, run_batch
from smart_caption_ros.imaging import squash


@dataclass(frozen=True)
class VisionOutput:
    """What the vision graph makes of B frames."""

    tokens: np.ndarray
    """(B, N, token width) float32."""
    boxes: np.ndarray | None = None
    """(B, A, 4) float32 xyxy, fractions of the frame that may reach out of it; None without a detector."""
    class_scores: np.ndarray | None = None
    """(B, A, classes) float32, from 0 to 1; None likewise."""


class Vision:
    """The vision graph of a bundle with the preprocessing that it was trained with.

    A frame is squashed to the graph's size, not letterboxed, with OpenCV's area interpolation where it shrinks and
    linear interpolation where it grows: on a CPU that is several times faster than a Resize operator, and the only
    work outside the graph. Channel order and normalisation are in the graph.
    """

    def __init__(self, bundle: Bundle, engine: Engine) -> None:
        """
        Raises:
            EngineError: the graph cannot be loaded.
            BundleError: the graph has other inputs and outputs than a vision graph.
        """
        self._size = (bundle.preprocessing.width, bundle.preprocessing.height)
        self._rows, self._columns = bundle.grid
        self._graph = engine.load(bundle.path / VISION_GRAPH)
        self.mode = self._graph.mode
        if self._graph.input_names != ("image_bgr",) or "tokens" not in self._graph.output_names:
            raise BundleError(
                f"{bundle.path / VISION_GRAPH} maps {self._graph.input_names} to {self._graph.output_names} "
                "instead of image_bgr to tokens; export the bundle again"
            )
        detects = bundle.detector is not None and bundle.detector.layout == VISION_LAYOUT
        self._outputs = ("tokens", "boxes", "class_scores") if detects else ("tokens",)
        if lacking := [name for name in self._outputs if name not in self._graph.output_names]:
            raise BundleError(
                f"{bundle.path / VISION_GRAPH} has no output {lacking[0]}, though the manifest says that it finds "
                "objects; export the bundle again"
            )

    def preprocess(self, image_bgr: np.ndarray) -> np.ndarray:
        """(H, W, 3) uint8 -> (1, height, width, 3) uint8."""
        return np.ascontiguousarray(squash(image_bgr, self._size))[None]

    def tokens(self, preprocessed: np.ndarray) -> np.ndarray:
        """(B, height, width, 3) uint8 -> (B, N, token width) float32."""
        return self.run(preprocessed).tokens

    def run(self, preprocessed: np.ndarray) -> VisionOutput:
        """All that the graph makes of (B, height, width, 3) uint8, in one pass."""
        outputs = run_batch(self._graph, {"image_bgr": preprocessed})
        return VisionOutput(*(outputs[name] for name in self._outputs))

    def boxes(self, width: int, height: int) -> np.ndarray:
        """(N, 4) float32: the grid cells as ``xyxy`` pixels of a frame of that size."""
        ys, xs = np.meshgrid(np.arange(self._rows), np.arange(self._columns), indexing="ij")
        cell = np.array([width / self._columns, height / self._rows] * 2, np.float32)
        return np.stack([xs, ys, xs + 1, ys + 1], axis=-1).reshape(-1, 4).astype(np.float32) * cell
