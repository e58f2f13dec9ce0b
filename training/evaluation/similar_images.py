"""Similar images, for CIDErBtw.

In an evaluation they are similar by the features of EfficientNet-Lite1 with the weights that Google trained on
ImageNet, whatever captioner is evaluated, so that CIDErBtw of all captioners refers to the same similar images. In
training they are similar by the visual tokens, computed once for all runs on the same images.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.files import cache_folder, replaced_atomically, sha256_of
from smart_caption_ros.imaging import resize_image
from training.data.photographs import ImageReader
from training.data.visual_inputs import VisualInputs
from training.paths import data_folder
from training.vision.released_weights import load_backbone, locate

SIMILAR_IMAGES = 5
"""Similar images of each image, as in the paper."""
NETWORK = "efficientnet_lite1"
_SIZE = (224, 224)
_BATCH = 16
_POOLED_AT_A_TIME = 50
"""Training images whose features are computed at a time."""
_COMPARED_AT_A_TIME = 1000
"""Images that are compared with all others at a time: bounds the memory."""


def photograph_features(images: Sequence[str], read_image: ImageReader) -> dict[str, NDArray[np.float32]]:
    """Compute a feature vector of each photograph: the mean of the network's last feature map, of length 1.

    The vectors are kept in the cache folder, by the content of the photographs: computing them takes as long as
    captioning them does.
    ``read_image``: reads an image, (H, W, 3) uint8 BGR.

    Returns:
        (1280,) float32 by image id.

    Raises:
        BackboneError: the package with the weights is not installed.
        DataError: an image is missing or broken.
    """
    weights = locate(NETWORK, data_folder() / "backbones")
    content = hashlib.sha256(sha256_of(weights).encode())
    for image in images:
        content.update(resize_image(read_image(image), _SIZE).tobytes())
    path = cache_folder() / "similar_images" / f"{content.hexdigest()}.npy"
    vectors = cached_array(path, lambda: _compute(weights, images, read_image))
    return dict(zip(images, vectors, strict=True))


def cached_array(path: Path, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Read an array of the cache, or compute and keep it; a cache that cannot be written costs time alone."""
    with suppress(OSError, ValueError, EOFError):
        kept: NDArray[Any] = np.load(path)
        return kept
    array = compute()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
            np.save(stream, array)
    return array


def _compute(weights: Path, images: Sequence[str], read_image: ImageReader) -> NDArray[np.float32]:
    """Run the network on photographs; returns (len(images), 1280) float32."""
    network = load_backbone(weights)
    vectors = []
    with torch.inference_mode():
        for start in tqdm(range(0, len(images), _BATCH), desc="similar images", unit="batch"):
            frames = np.stack([resize_image(read_image(image), _SIZE) for image in images[start : start + _BATCH]])
            pooled = network(torch.from_numpy(frames)).mean(dim=1)
            vectors.append(torch.nn.functional.normalize(pooled).numpy())
    return np.concatenate(vectors)


def similar_images(
    features: Mapping[str, NDArray[np.float32]],
    images: Sequence[str],
    domains: Mapping[str, str] | None = None,
    count: int = SIMILAR_IMAGES,
) -> dict[str, list[str]]:
    """Find the most similar images of each image, the most similar first.

    Args:
        features: unit vectors by image id, (D,) float32; similarity is their scalar product.
        domains: domain of images; similar images are of the same domain, and those without one of none.
        count: number of similar images; fewer where a domain has no more.
    """
    by_domain: dict[str | None, list[str]] = {}
    for image in images:
        by_domain.setdefault((domains or {}).get(image), []).append(image)
    similar: dict[str, list[str]] = {}
    for members in by_domain.values():
        vectors = np.stack([features[image] for image in members])
        for start in range(0, len(members), _COMPARED_AT_A_TIME):
            own = np.arange(start, min(start + _COMPARED_AT_A_TIME, len(members)))
            similarity = vectors[own] @ vectors.T
            similarity[own - start, own] = -np.inf
            nearest = np.argsort(-similarity, axis=1, kind="stable")[:, : min(count, len(members) - 1)]
            similar.update({members[i]: [members[place] for place in row] for i, row in zip(own, nearest, strict=True)})
    return similar


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
    parts = np.array_split(places, -(-len(places) // _POOLED_AT_A_TIME))
    pooled = np.concatenate([inputs.pooled(part) for part in tqdm(parts, desc="similar images", unit="batch")])
    return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.finfo(np.float32).tiny)
