"""How detectors want their frames and give their boxes; each layout is recognised from the graph itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.engines.base import Graph, Tensor
from smart_caption_ros.engines.errors import EngineError

Arrays = Mapping[str, np.ndarray]

STRIDES = (8, 16, 32)
PADDING_VALUE = 114
ANSWERS = ("boxes", "scores", "labels")
FRAME_SIZE = "orig_target_sizes"


@dataclass(frozen=True)
class Candidates:
    """Boxes before anything is sorted out. N boxes, in pixels of the frame."""

    boxes_xyxy: NDArray[np.float32]
    """(N, 4)"""
    scores: NDArray[np.float32]
    """(N,)"""
    class_ids: NDArray[np.int64]
    """(N,)"""


class Layout(Protocol):
    """Between frames and boxes on one side and the arrays of a graph on the other."""

    name: ClassVar[str]
    overlapping: ClassVar[bool]
    """Whether one object may have many boxes, so that non-maximum suppression is still to be done."""

    @property
    def classes(self) -> int | None:
        """How many classes there are; None where the graph does not tell."""
        ...

    def inputs(self, image_bgr: np.ndarray) -> dict[str, np.ndarray]:
        """(H, W, 3) uint8 -> what the graph takes."""
        ...

    def candidates(self, outputs: Arrays, width: int, height: int) -> Candidates:
        """What the graph gave for a frame of that size.

        Raises:
            EngineError: the arrays do not have the shapes that they must have.
        """
        ...


def letterbox(image_bgr: np.ndarray, width: int, height: int) -> tuple[NDArray[np.uint8], tuple[float, float]]:
    """The frame scaled to fit, at the top left of a grey picture, as YOLOX is trained.

    Returns:
        (height, width, 3) uint8, and how many pixels of the picture a pixel of the frame is, across and down.
    """
    rows, columns = image_bgr.shape[:2]
    scale = min(height / rows, width / columns)
    size = (max(1, int(columns * scale)), max(1, int(rows * scale)))
    picture = np.full((height, width, 3), PADDING_VALUE, np.uint8)
    picture[: size[1], : size[0]] = cv2.resize(image_bgr, size, interpolation=cv2.INTER_LINEAR)
    return picture, letterbox_scale(columns, rows, width, height)


def letterbox_scale(columns: int, rows: int, width: int, height: int) -> tuple[float, float]:
    """The scale that :func:`letterbox` uses; whole pixels make it differ a little across and down."""
    scale = min(height / rows, width / columns)
    return max(1, int(columns * scale)) / columns, max(1, int(rows * scale)) / rows


@dataclass(frozen=True)
class Yolox:
    """YOLOX as its authors export it, decoded (``--decode_in_inference``) or not.

    One input [1, 3, H, W], BGR from 0 to 255, letterboxed; one output [1, A, 5 + classes]: a row for every cell of the
    grids of strides 8, 16 and 32, holding the box (centre and size), the probability of an object and one for each
    class.
    """

    name: ClassVar[str] = "yolox"
    overlapping: ClassVar[bool] = True
    input: Tensor
    width: int
    height: int
    classes: int
    decoded: bool

    @classmethod
    def recognise(cls, graph: Graph) -> Yolox | None:
        """The layout of a graph that has it; runs the graph once."""
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
        # Decoded and undecoded rows have one shape. Boxes lie around their cells, so one reading of the centres fits.
        centres = np.nan_to_num(output[0, :, :2].astype(np.float32), posinf=0, neginf=0)
        cells = (anchors + 0.5) * strides
        decoded = np.median(np.abs(centres - cells)) < np.median(np.abs((centres + anchors) * strides - cells))
        return cls(given, width, height, output.shape[2] - 5, bool(decoded))

    def inputs(self, image_bgr: np.ndarray) -> dict[str, np.ndarray]:
        picture, _ = letterbox(image_bgr, self.width, self.height)
        return {self.input.name: np.ascontiguousarray(picture.transpose(2, 0, 1)[None], self.input.dtype)}

    def candidates(self, outputs: Arrays, width: int, height: int) -> Candidates:
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
        with np.errstate(over="ignore", invalid="ignore"):  # a box that is not finite is left out later
            if not self.decoded:
                centres, sizes = (centres + anchors) * strides, np.exp(sizes) * strides
            boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=1)
        scale = np.array(letterbox_scale(width, height, self.width, self.height) * 2, np.float32)
        return Candidates((boxes / scale).astype(np.float32), scores, class_ids)


def _grid(width: int, height: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(A, 2): column and row of every cell in its own grid, and (A, 1): the stride of that grid."""
    cells, strides = [], []
    for stride in STRIDES:
        rows, columns = np.meshgrid(np.arange(height // stride), np.arange(width // stride), indexing="ij")
        cells.append(np.stack([columns, rows], axis=-1).reshape(-1, 2))
        strides.append(np.full((cells[-1].shape[0], 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(strides).astype(np.float32)


@dataclass(frozen=True)
class BoxesScoresLabels:
    """Graphs that end in ``boxes``, ``scores`` and ``labels``: torchvision's detectors, RT-DETR and its kin.

    One picture goes in, RGB, [3, H, W], [1, 3, H, W] or [1, H, W, 3]: floating point from 0 to 1, or uint8 from 0 to
    255. Where the graph fixes H and W the frame is squashed to them, else it goes in as it is. ``orig_target_sizes``
    [1, 2] (RT-DETR) gets width and height of the frame, and boxes are then in its pixels. Otherwise boxes are in
    pixels of the picture, or, where none of them goes beyond 2, in fractions of it. Boxes are left, top, right, bottom;
    with or without a first axis of size 1, as scores and labels.
    """

    name: ClassVar[str] = "boxes-scores-labels"
    overlapping: ClassVar[bool] = False
    classes: ClassVar[None] = None
    input: Tensor
    size_input: Tensor | None
    answers: tuple[str, str, str]
    """Names of boxes, scores and labels."""

    @classmethod
    def recognise(cls, graph: Graph) -> BoxesScoresLabels | None:
        """The layout of a graph that has it."""
        names = {tensor.name.lower(): tensor.name for tensor in graph.outputs}
        sizes = [tensor for tensor in graph.inputs if tensor.name == FRAME_SIZE]
        pictures = [tensor for tensor in graph.inputs if tensor.name != FRAME_SIZE]
        if not set(ANSWERS) <= names.keys() or len(pictures) != 1:
            return None
        (picture,) = pictures
        if not (picture.dtype == "uint8" or picture.dtype.startswith("float")) or _picture_size(picture) is None:
            return None
        boxes, scores, labels = (names[answer] for answer in ANSWERS)
        return cls(picture, sizes[0] if sizes else None, (boxes, scores, labels))

    def inputs(self, image_bgr: np.ndarray) -> dict[str, np.ndarray]:
        rows, columns = image_bgr.shape[:2]
        width, height = self._size(columns, rows)
        if (width, height) != (columns, rows):
            shrinks = columns >= width and rows >= height
            image_bgr = cv2.resize(
                image_bgr, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
            )
        picture = image_bgr[:, :, ::-1]
        if _channels_first(self.input):
            picture = picture.transpose(2, 0, 1)
        if len(self.input.shape) == 4:
            picture = picture[None]
        picture = np.ascontiguousarray(picture, self.input.dtype)
        if self.input.dtype != "uint8":
            picture /= np.asarray(255, self.input.dtype)
        given = {self.input.name: picture}
        if self.size_input is not None:
            given[self.size_input.name] = np.array([[columns, rows]], self.size_input.dtype)
        return given

    def candidates(self, outputs: Arrays, width: int, height: int) -> Candidates:
        boxes, scores, labels = (np.asarray(outputs[name]) for name in self.answers)
        count = scores.size
        if boxes.size != 4 * count or labels.size != count or boxes.shape[-1:] != (4,):
            shapes = ", ".join(f"{name} {list(outputs[name].shape)}" for name in self.answers)
            raise EngineError(f"the detector gave {shapes}, which do not go together")
        boxes = boxes.reshape(count, 4).astype(np.float32)
        finite = boxes[np.isfinite(boxes).all(axis=1)]
        if self.size_input is None:
            fractions = finite.size and finite.max() <= 2
            across, down = (1, 1) if fractions else self._size(width, height)
            boxes *= np.array([width / across, height / down] * 2, np.float32)
        with np.errstate(invalid="ignore"):  # a label that is no number is no class of the list
            class_ids = labels.reshape(count).astype(np.int64)
        return Candidates(boxes, scores.reshape(count).astype(np.float32), class_ids)

    def _size(self, columns: int, rows: int) -> tuple[int, int]:
        """Width and height of the picture for a frame of that size."""
        width, height = _picture_size(self.input) or (None, None)
        return width or columns, height or rows


def _channels_first(picture: Tensor) -> bool:
    return picture.shape[-3] == 3


def _picture_size(picture: Tensor) -> tuple[int | None, int | None] | None:
    """Width and height that the graph asks for, None where open; None instead of both for what is no picture."""
    shape = picture.shape
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[0] not in (1, None)):
        return None
    if _channels_first(picture):
        return shape[-1], shape[-2]
    return (shape[-2], shape[-3]) if shape[-1] == 3 else None


def recognise(graph: Graph) -> Layout | None:
    """The layout of a graph; None where it is none of those known here. May run the graph."""
    return Yolox.recognise(graph) or BoxesScoresLabels.recognise(graph)


LAYOUT_NAMES: Sequence[str] = (Yolox.name, BoxesScoresLabels.name)
