"""Tokens of the regions that a detector finds: a grid of tokens, pooled inside each box.

This is no bottom-up attention, whose detector has features of its own: any ONNX detector says where, the vision graph
of a bundle says what. The first token is of the whole photograph, so that an image without objects has one, too.
"""

from collections.abc import Sequence

import numpy as np

from smart_caption_ros.detection.boxes import Box


def pool_regions(
    tokens: np.ndarray, grid: tuple[int, int], boxes_xyxy: Sequence[Box], width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means of grid tokens, weighted by how much of each cell a region covers.

    Args:
        tokens: (rows * columns, d), row by row.
        grid: rows and columns.
        boxes_xyxy: of the regions, pixels of the photograph, inside it and not empty.
        width, height: of the photograph, pixels.

    Returns:
        (1 + n, d) float32 tokens, the whole photograph's first, and (1 + n, 4) float32 boxes.
    """
    rows, columns = grid
    boxes = np.array([(0, 0, width, height), *boxes_xyxy], np.float32)
    across = _covered(boxes[:, 0] * columns / width, boxes[:, 2] * columns / width, columns)
    down = _covered(boxes[:, 1] * rows / height, boxes[:, 3] * rows / height, rows)
    shares = (down[:, :, None] * across[:, None, :]).reshape(len(boxes), -1)
    shares /= shares.sum(axis=1, keepdims=True)
    return (shares @ tokens).astype(np.float32), boxes


def _covered(start: np.ndarray, stop: np.ndarray, cells: int) -> np.ndarray:
    """How much of each of ``cells`` unit intervals lies between start and stop, (n, cells)."""
    edges = np.arange(cells)
    overlap = np.minimum(stop[:, None], edges + 1) - np.maximum(start[:, None], edges)
    return np.clip(overlap, 0.0, 1.0)
