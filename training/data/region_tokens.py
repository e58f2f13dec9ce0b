"""Tokens of regions: the means of grid tokens inside the boxes of a detector.

Unlike bottom-up attention, the boxes come from any ONNX detector and the features from the vision graph of a bundle.
The first token covers the whole photograph, so that an image without objects has a token.
"""

from collections.abc import Sequence

import numpy as np

from smart_caption_ros.detection.boxes import Box


def pool_regions(
    tokens: np.ndarray, grid: tuple[int, int], boxes_xyxy: Sequence[Box], width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """Average the grid tokens of each region, weighted by the area of the cell that the region covers.

    Args:
        tokens: (rows * columns, d) float, row by row.
        grid: rows and columns of the grid.
        boxes_xyxy: boxes of the regions in pixels, inside the photograph and not empty.
        width: of the photograph, pixels.
        height: of the photograph, pixels.

    Returns:
        (1 + n, d) float32 tokens, that of the whole photograph first, and (1 + n, 4) float32 boxes in pixels.
    """
    rows, columns = grid
    boxes = np.array([(0, 0, width, height), *boxes_xyxy], np.float32)
    across = _covered(boxes[:, 0] * columns / width, boxes[:, 2] * columns / width, columns)
    down = _covered(boxes[:, 1] * rows / height, boxes[:, 3] * rows / height, rows)
    shares = (down[:, :, None] * across[:, None, :]).reshape(len(boxes), -1)
    shares /= shares.sum(axis=1, keepdims=True)
    return (shares @ tokens).astype(np.float32), boxes


def _covered(start: np.ndarray, stop: np.ndarray, cells: int) -> np.ndarray:
    """Compute the covered length of each of ``cells`` unit intervals, (n, cells), for n spans."""
    edges = np.arange(cells)
    overlap = np.minimum(stop[:, None], edges + 1) - np.maximum(start[:, None], edges)
    return np.clip(overlap, 0.0, 1.0)
