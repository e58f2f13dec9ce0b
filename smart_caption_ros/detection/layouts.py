"""Layouts of the inputs and outputs of ONNX detectors. A layout is recognised from the graph itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.detections import Candidates
from smart_caption_ros.engines.base import Arrays, EngineError, Graph, Tensor
from smart_caption_ros.imaging import resize_image

STRIDES = (8, 16, 32)
"""Pixels between the cells of each YOLOX grid."""
PADDING_VALUE = 114
"""Grey level around a letterboxed frame."""
OUTPUTS = ("boxes", "scores", "labels")
FRAME_SIZE = "orig_target_sizes"


def letterbox(image_bgr: np.ndarray, width: int, height: int) -> NDArray[np.uint8]:
    """Scale a frame to fit and place it at the top left of a grey image of height x width, as in YOLOX's training."""
    rows, columns = image_bgr.shape[:2]
    across, down = letterbox_scale(columns, rows, width, height)
    size = round(columns * across), round(rows * down)
    canvas = np.full((height, width, 3), PADDING_VALUE, np.uint8)
    canvas[: size[1], : size[0]] = resize_image(image_bgr, size, cv2.INTER_LINEAR)
    return canvas


def letterbox_scale(columns: int, rows: int, width: int, height: int) -> tuple[float, float]:
    """Compute the horizontal and vertical scale of :func:`letterbox`; rounding to pixels makes them differ slightly."""
    scale = min(height / rows, width / columns)
    return max(1, int(columns * scale)) / columns, max(1, int(rows * scale)) / rows


@dataclass(frozen=True)
class Yolox:
    """YOLOX as its authors export it, decoded (``--decode_in_inference``) or not.

    One input [1, 3, H, W], BGR from 0 to 255, letterboxed. One output [1, A, 5 + classes]: for each cell of the grids
    of strides 8, 16 and 32 the box (centre and size), the probability of an object and that of each class.
    """

    name: ClassVar[str] = "yolox"
    overlapping: ClassVar[bool] = True
    """Whether the graph gives several boxes for one object, so that non-maximum suppression is needed."""
    input: Tensor
    width: int
    height: int
    classes: int
    decoded: bool

    @classmethod
    def recognise(cls, graph: Graph) -> "Yolox | None":
        """Recognise the layout; None for other graphs. Runs the graph once."""
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return None
        (given,) = graph.inputs
        if len(given.shape) != 4 or given.shape[0] not in (1, None) or given.shape[1] != 3:
            return None
        height, width = given.shape[2:]
        if height is None or width is None or not given.dtype.startswith("float"):
            return None
        anchors, strides = _grid(width, height)
        grey = np.full((1, 3, height, width), PADDING_VALUE, given.dtype)
        output = graph.run({given.name: grey})[graph.outputs[0].name]
        if output.ndim != 3 or output.shape[:2] != (1, len(anchors)) or output.shape[2] < 6:
            return None
        # Decoded and undecoded outputs have the same shape. Boxes lie near their cells, which tells them apart.
        centres = np.nan_to_num(output[0, :, :2].astype(np.float32), posinf=0, neginf=0)
        cells = (anchors + 0.5) * strides
        decoded = np.median(np.abs(centres - cells)) < np.median(np.abs((centres + anchors) * strides - cells))
        return cls(given, width, height, output.shape[2] - 5, bool(decoded))

    def inputs(self, image_bgr: np.ndarray) -> dict[str, np.ndarray]:
        """Convert a frame, (H, W, 3) uint8, to the graph's inputs."""
        canvas = letterbox(image_bgr, self.width, self.height)
        return {self.input.name: np.ascontiguousarray(canvas.transpose(2, 0, 1)[None], self.input.dtype)}

    def candidates(self, outputs: Arrays, width: int, height: int) -> Candidates:
        """Convert the graph's outputs for a frame of ``width`` x ``height`` pixels to candidates.

        Raises:
            EngineError: the arrays do not have the shapes of this layout.
        """
        (output,) = outputs.values()
        anchors, strides = _grid(self.width, self.height)
        if output.shape != (1, len(anchors), 5 + self.classes):
            raise EngineError(
                f"the detector gave {list(output.shape)} instead of {[1, len(anchors), 5 + self.classes]}"
            )
        rows = output[0].astype(np.float32, copy=False)
        class_ids = rows[:, 5:].argmax(axis=1)
        scores = rows[:, 4] * rows[np.arange(len(rows)), 5 + class_ids]
        centres, sizes = rows[:, :2], rows[:, 2:4]
        with np.errstate(over="ignore", invalid="ignore"):  # to_objects leaves out boxes that are not finite
            if not self.decoded:
                centres, sizes = (centres + anchors) * strides, np.exp(sizes) * strides
            boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=1)
        scale = np.array(letterbox_scale(width, height, self.width, self.height) * 2, np.float32)
        return Candidates((boxes / scale).astype(np.float32), scores, class_ids)


def _grid(width: int, height: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute column and row of each cell in its grid, (A, 2), and the stride of that grid, (A, 1)."""
    cells, strides = [], []
    for stride in STRIDES:
        rows, columns = np.meshgrid(np.arange(height // stride), np.arange(width // stride), indexing="ij")
        cells.append(np.stack([columns, rows], axis=-1).reshape(-1, 2))
        strides.append(np.full((cells[-1].shape[0], 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(strides).astype(np.float32)


@dataclass(frozen=True)
class BoxesScoresLabels:
    """Graphs with the outputs ``boxes``, ``scores`` and ``labels``: torchvision's detectors, RT-DETR and similar ones.

    The input is an RGB image, [3, H, W], [1, 3, H, W] or [1, H, W, 3], floating point from 0 to 1 or uint8 from 0 to
    255. If the graph fixes H and W, the frame is squashed to them. An input ``orig_target_sizes`` [1, 2] (RT-DETR) gets
    the frame's width and height; boxes are then in pixels of the frame. Otherwise boxes are in pixels of the input
    image, or in fractions of it if none exceeds 2. Boxes are xyxy. Outputs may have a first axis of size 1.
    """

    name: ClassVar[str] = "boxes-scores-labels"
    overlapping: ClassVar[bool] = False
    classes: ClassVar[None] = None  # the graph does not tell
    input: Tensor
    size_input: Tensor | None
    outputs: tuple[str, str, str]
    """The graph's names of boxes, scores and labels."""

    @classmethod
    def recognise(cls, graph: Graph) -> "BoxesScoresLabels | None":
        """Recognise the layout; None for other graphs."""
        names = {tensor.name.lower(): tensor.name for tensor in graph.outputs}
        sizes = [tensor for tensor in graph.inputs if tensor.name == FRAME_SIZE]
        images = [tensor for tensor in graph.inputs if tensor.name != FRAME_SIZE]
        if not set(OUTPUTS) <= names.keys() or len(images) != 1:
            return None
        (image,) = images
        if not (image.dtype == "uint8" or image.dtype.startswith("float")) or _image_size(image) is None:
            return None
        boxes, scores, labels = (names[output] for output in OUTPUTS)
        return cls(image, sizes[0] if sizes else None, (boxes, scores, labels))

    def inputs(self, image_bgr: np.ndarray) -> dict[str, np.ndarray]:
        """As :meth:`Yolox.inputs`."""
        rows, columns = image_bgr.shape[:2]
        width, height = self._size(columns, rows)
        image: NDArray[Any] = resize_image(image_bgr, (width, height))[:, :, ::-1]
        if _channels_first(self.input):
            image = image.transpose(2, 0, 1)
        if len(self.input.shape) == 4:
            image = image[None]
        image = np.ascontiguousarray(image, self.input.dtype)
        if self.input.dtype != "uint8":
            image /= np.asarray(255, self.input.dtype)
        given = {self.input.name: image}
        if self.size_input is not None:
            given[self.size_input.name] = np.array([[columns, rows]], self.size_input.dtype)
        return given

    def candidates(self, outputs: Arrays, width: int, height: int) -> Candidates:
        """As :meth:`Yolox.candidates`."""
        boxes, scores, labels = (np.asarray(outputs[name]) for name in self.outputs)
        count = scores.size
        if boxes.size != 4 * count or labels.size != count or boxes.shape[-1:] != (4,):
            shapes = ", ".join(f"{name} {list(outputs[name].shape)}" for name in self.outputs)
            raise EngineError(f"the detector gave {shapes}, which do not go together")
        boxes = boxes.reshape(count, 4).astype(np.float32)
        finite = boxes[np.isfinite(boxes).all(axis=1)]
        if self.size_input is None:
            fractions = finite.size and finite.max() <= 2
            across, down = (1, 1) if fractions else self._size(width, height)
            boxes *= np.array([width / across, height / down] * 2, np.float32)
        with np.errstate(invalid="ignore"):  # a label that is NaN becomes a negative class id
            class_ids = labels.reshape(count).astype(np.int64)
        return Candidates(boxes, scores.reshape(count).astype(np.float32), class_ids)

    def _size(self, columns: int, rows: int) -> tuple[int, int]:
        """Compute width and height of the input image for a frame of ``columns`` x ``rows``."""
        width, height = _image_size(self.input) or (None, None)
        return width or columns, height or rows


def _channels_first(image: Tensor) -> bool:
    return image.shape[-3] == 3


def _image_size(image: Tensor) -> tuple[int | None, int | None] | None:
    """Width and height that the graph fixes, None where they are dynamic; None if the tensor is not an image."""
    shape = image.shape
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[0] not in (1, None)):
        return None
    if _channels_first(image):
        return shape[-1], shape[-2]
    return (shape[-2], shape[-3]) if shape[-1] == 3 else None


def recognise(graph: Graph) -> Yolox | BoxesScoresLabels | None:
    """Recognise the layout of a graph, which may be run for it; None if the layout is unknown."""
    return Yolox.recognise(graph) or BoxesScoresLabels.recognise(graph)


LAYOUT_NAMES: Sequence[str] = (Yolox.name, BoxesScoresLabels.name)
