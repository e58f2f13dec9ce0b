"""The most similar images of each image of the training split, computed once for all runs on the same images."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from training.data.visual_inputs import VisualInputs
from training.evaluation.similar_images import SIMILAR_IMAGES, cached_array, similar_images

_AT_A_TIME = 50
"""Images whose features are computed at a time."""


def find_similar_photographs(
    cache: Path, inputs: VisualInputs, images: Sequence[str], sources: Mapping[str, str]
) -> NDArray[np.int64]:
    """Find the similar images of the same source for each training image.

    Similarity is that of the mean tokens, which the network computes with its present weights.

    Args:
        cache: folder of the result, which is read where it was computed before.
        images: ids of the training images, in which an image may be repeated.
        sources: source of each image in a mixture of data sets.

    Returns:
        (images, K) indices into ``images``, the most similar first; -1 where there are fewer than K.

    Raises:
        DataError: an image cannot be read.
    """
    key = hashlib.sha256(json.dumps([SIMILAR_IMAGES, inputs.pooled_key(), list(images)]).encode()).hexdigest()[:16]
    return cached_array(cache / f"similar-{key}.npy", lambda: _find(inputs, images, sources))


def _find(inputs: VisualInputs, images: Sequence[str], sources: Mapping[str, str]) -> NDArray[np.int64]:
    # An image that is repeated stands for all its repetitions.
    first_places: dict[str, int] = {}
    for place, image in enumerate(images):
        first_places.setdefault(image, place)
    vectors = dict(zip(first_places, _features(inputs, np.array(list(first_places.values()))), strict=True))
    similar = similar_images(vectors, list(vectors), sources, SIMILAR_IMAGES)
    found = np.full((len(images), max(map(len, similar.values()))), -1, np.int64)
    for row, image in zip(found, images, strict=True):
        row[: len(similar[image])] = [first_places[other] for other in similar[image]]
    return found


def _features(inputs: VisualInputs, places: NDArray[np.int64]) -> NDArray[np.float32]:
    """Compute the mean token of images, of length 1, (n, D)."""
    parts = np.array_split(places, -(-len(places) // _AT_A_TIME))
    pooled = np.concatenate([inputs.pooled(part) for part in tqdm(parts, desc="similar images", unit="batch")])
    return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.finfo(np.float32).tiny)
