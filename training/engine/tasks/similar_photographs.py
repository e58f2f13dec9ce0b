"""Similar images of the training split and the CIDErBtw of its captions, kept with the tokenised captions."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from tqdm import tqdm

from smart_caption_ros.files import replaced_atomically
from training.data.tokenized_captions import TokenizedCaptions
from training.data.visual_batches import VisualInputs
from training.evaluation.similar_images import SIMILAR_IMAGES, similar_images
from training.objectives.distinctiveness import Distinctiveness

_FORMAT = 1
"""Version of the cache file."""
_AT_A_TIME = 50
"""Images whose features are computed at a time."""


def compare_captions(
    cache: Path, inputs: VisualInputs, images: Sequence[str], groups: Sequence[Sequence[str]], words: TokenizedCaptions
) -> Distinctiveness:
    """Compare the captions of each training image with those of similar images of the same source.

    Similarity is that of the mean tokens, which the network computes with its present weights.

    Args:
        cache: folder of the result, which is read where it was computed before.
        inputs: of the training split.
        images: ids of the training images, in which an image may be repeated.
        groups: the same images without repetitions, by source.
        words: captions of ``images``.

    Raises:
        DataError: an image cannot be read.
    """
    path = cache / f"distinctiveness-{_key(inputs, words)}.safetensors"
    try:
        return Distinctiveness(**load_file(path))
    except (OSError, SafetensorError, TypeError):
        pass
    first: dict[str, int] = {}
    for place, image in enumerate(images):
        first.setdefault(image, place)
    features = _features(inputs, np.array(list(first.values())))
    vectors = dict(zip(first, features, strict=True))
    domains = {image: str(number) for number, group in enumerate(groups) for image in group}
    found = similar_images(vectors, list(first), domains, SIMILAR_IMAGES)
    rows = {image: row for row, image in enumerate(first)}
    distinct = Distinctiveness.of_captions(
        words.select(list(first.values())), [[rows[other] for other in found[image]] for image in first]
    )
    # From images without repetitions to those of the split.
    of_split = np.array([rows[image] for image in images])
    places = np.append(list(first.values()), -1)  # the last one is that of -1, no image
    result = Distinctiveness(
        places[distinct.similar[of_split]], distinct.cider_btw[of_split], distinct.counts[of_split]
    )
    cache.mkdir(parents=True, exist_ok=True)
    with replaced_atomically(path) as unfinished:
        save_file(vars(result), unfinished)
    return result


def _features(inputs: VisualInputs, places: NDArray[np.int64]) -> NDArray[np.float32]:
    """Compute the mean token of images, of length 1, (n, D)."""
    parts = np.array_split(places, -(-len(places) // _AT_A_TIME))
    pooled = np.concatenate([inputs.pooled(part) for part in tqdm(parts, desc="similar images", unit="batch")])
    return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def _key(inputs: VisualInputs, words: TokenizedCaptions) -> str:
    digest = hashlib.sha256(json.dumps([_FORMAT, SIMILAR_IMAGES, inputs.pooled_key(), list(words.words)]).encode())
    for array in (words.ids, words.caption_starts, words.image_starts, words.images):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
