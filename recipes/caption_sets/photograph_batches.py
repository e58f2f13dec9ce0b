"""What a network computes of photographs, kept batch by batch so that a run that was stopped can continue."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.files import replaced_atomically, sha256_of_bytes
from smart_caption_ros.imaging import ImageError, decode_image_bytes, resize_image
from training.errors import DataError
from training.vision.backbone import IMAGE_SIZE, Backbone

_BATCH = 32
CERTAIN = 0.5
"""Least score of a detection that is certainly right; others are possible."""


def computed_of_photographs(
    photographs: Iterable[tuple[str, bytes]],
    count: int,
    compute: Callable[[NDArray[np.uint8]], NDArray[Any]],
    cache: Path,
    title: str,
) -> Mapping[str, NDArray[Any]]:
    """Compute an array for each photograph, or read it from a cache.

    Args:
        photographs: names and encoded photographs.
        count: number of photographs, for the progress bar.
        compute: (B, 224, 224, 3) uint8 BGR -> (B, ...).
        cache: folder of the files, one for each batch of photographs of equal content.
        title: of the progress bar.

    Raises:
        DataError: a photograph is not an image.
    """
    found: dict[str, NDArray[Any]] = {}
    with tqdm(total=count, desc=title, unit="photograph", mininterval=1) as bar:
        remaining = iter(photographs)
        while batch := list(islice(remaining, _BATCH)):
            path = cache / f"{sha256_of_bytes(b''.join(encoded for _, encoded in batch))[:24]}.npy"
            try:
                values = np.load(path)
            except (OSError, ValueError):
                values = compute(np.stack([_frame(name, encoded) for name, encoded in batch]))
                cache.mkdir(parents=True, exist_ok=True)
                with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
                    np.save(stream, values)
            found.update((name, values[row]) for row, (name, _) in enumerate(batch))
            bar.update(len(batch))
    return found


def mean_tokens(backbone: Backbone) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    """Return a function that computes the mean of the tokens of frames, (B, D) float32."""

    def compute(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.inference_mode():
            means: NDArray[np.float32] = backbone(torch.from_numpy(frames)).float().mean(dim=1).numpy()
        return means

    return compute


def object_counts(detector: Detector) -> Callable[[NDArray[np.uint8]], NDArray[np.int16]]:
    """Return a function that counts the certain and the possible objects of each class, (B, classes, 2) int16."""
    places = {name: place for place, name in enumerate(detector.class_names)}

    def compute(frames: NDArray[np.uint8]) -> NDArray[np.int16]:
        counts = np.zeros((len(frames), len(places), 2), np.int16)
        for row, frame in zip(counts, frames, strict=True):
            for found in detector.detect(frame):
                row[places[found.class_name]] += (found.score >= CERTAIN, 1)
        return counts

    return compute


def counts_by_label(counts: NDArray[np.int16], class_names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the numbers of certain and of possible objects, of the classes that have any."""
    return dict(_nonzero(counts, class_names))


def _nonzero(counts: NDArray[np.int16], class_names: Iterable[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, (certain, possible) in zip(class_names, counts.tolist(), strict=True):
        if possible:
            yield name, (certain, possible)


def _frame(name: str, encoded: bytes) -> NDArray[np.uint8]:
    try:
        return resize_image(decode_image_bytes(encoded), (IMAGE_SIZE, IMAGE_SIZE))
    except ImageError as error:
        raise DataError(f"{name}: {error}") from None
