"""Find photographs for training that show the same as a photograph of a dev, test or benchmark set.

    python -m recipes.near_duplicates

Two measures, because neither finds everything:

* A perceptual hash (Zauner 2010): the low frequencies of the photograph, each above or below their median. The same
  picture, scaled, squashed, compressed, brightened or mirrored, changes few bits.
* Pictures of one series (the same scene, seconds later) share details at other places, which the hash does not see.
  Pairs whose thumbnails correlate are compared by SIFT points (Lowe 2004) that one homography maps.
"""

import csv
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cv2
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.sources import Frame, SourceError, open_source
from training.command_line import DataFolderOption, run_command
from training.data import coco_photographs
from training.data.held_out import NEAR_DUPLICATES, kept_aside_rooms
from training.data.photographs import PhotographArchive
from training.errors import DataError

MAX_DISTANCE = 68
"""Bits of 256 by which the hashes of near duplicates differ at most."""
MIN_CORRELATION, MIN_POINTS = 0.5, 12
"""Least correlation of the thumbnails of pictures of one series, and least number of points that fit."""
_HASH_PX, _FREQUENCIES = 32, 16
_THUMBNAIL_PX = 32
_SHIFTS_PX = (-2, 0, 2)
_SIFT_PX, _SIFT_POINTS = 260, 300
_RATIO = 0.8
"""Lowe's ratio: distance of the nearest point over that of the second nearest."""

Photographs = Mapping[str, Callable[[], bytes]]
"""``<data folder>/<file name>`` to a function that reads the file of the photograph."""


class Pair(NamedTuple):
    """A photograph for training, and a measured one that shows the same."""

    photograph: str
    """``<data folder>/<file name>``."""
    measured: str
    distance: int
    """Bits by which the hashes differ."""
    points: int
    """Points of one homography; 0 where thumbnails do not correlate."""


def perceptual_hash(image_bgr: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Hash a photograph and its mirror image.

    Args:
        image_bgr: (H, W, 3) uint8.

    Returns:
        (2, 4) uint64.
    """
    grey = cv2.cvtColor(image_bgr, cv2.COLOR_BGR2GRAY)
    small = cv2.resize(grey, (_HASH_PX, _HASH_PX), interpolation=cv2.INTER_AREA)
    low = cv2.dct(small.astype(np.float32))[:_FREQUENCIES, :_FREQUENCIES]
    low[0, 0] = 0  # the mean brightness
    # Mirroring changes the sign of every odd horizontal frequency.
    mirrored = low * (-1.0) ** np.arange(_FREQUENCIES)
    return np.stack([np.packbits(values > np.median(values)).view(np.uint64) for values in (low, mirrored)])


def same_pictures(training: Photographs, measured: Photographs, max_distance: int = MAX_DISTANCE) -> list[Pair]:
    """List the pairs whose hashes differ by ``max_distance`` bits or fewer, the nearest first.

    Raises:
        DataError: a photograph cannot be read or is not an image.
    """
    names, hashes = list(training), _computed(perceptual_hash, training)
    pairs = []
    for name, (hashed, _) in zip(measured, _computed(perceptual_hash, measured), strict=True):
        distances = _distances(hashes, hashed)
        pairs += [
            Pair(names[near], name, int(distances[near]), 0) for near in np.flatnonzero(distances <= max_distance)
        ]
    return sorted(pairs, key=lambda pair: (pair.distance, pair.photograph, pair.measured))


def pictures_of_one_series(training: Photographs, measured: Photographs) -> list[Pair]:
    """List the pairs of photographs that show the same details, those with most points first.

    Raises:
        DataError: a photograph cannot be read or is not an image.
    """
    names, others, readers = list(training), list(measured), {**training, **measured}
    correlations = _correlations(_computed(_thumbnail, training), _computed(_thumbnail, measured))

    @cache
    def decoded(name: str) -> NDArray[np.uint8]:
        return _decoded(name, readers[name](), cv2.IMREAD_COLOR)

    @cache
    def points(name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return _sift(decoded(name))

    pairs = []
    candidates = [(names[place], others[other]) for place, other in np.argwhere(correlations >= MIN_CORRELATION)]
    for name, other in tqdm(candidates, "similar pairs", unit="pair", mininterval=1):
        fitting = _fitting_points(points(name), points(other))
        if fitting >= MIN_POINTS:
            distance = _distances(perceptual_hash(decoded(name))[None], perceptual_hash(decoded(other))[0])
            pairs.append(Pair(name, other, int(distance[0]), fitting))
    return sorted(pairs, key=lambda pair: (-pair.points, pair.photograph, pair.measured))


def training_photographs(data: Path) -> Photographs:
    """List the photographs of the data folder that training sets may use.

    Raises:
        DataError: a file is missing or malformed.
    """
    kept_aside = set(kept_aside_rooms())
    rooms = PhotographArchive(data / "nyu_rooms" / "images.zip").names
    return {
        **_archived(data / "flickr8k" / "images_224.zip", _flickr8k(data, "train")),
        **_archived(data / "coco_photographs" / coco_photographs.IMAGES, _coco_photographs(data, "train")),
        **_in_folder(data / "coco_val2017_captions", "images"),
        **_archived(data / "nyu_rooms" / "images.zip", [name for name in rooms if name not in kept_aside]),
        **_archived(data / "scenes" / "images.zip"),
        **_archived(data / "ikea_rooms" / "rooms.zip"),
    }


def measured_photographs(data: Path) -> Photographs:
    """List the photographs of dev, test and benchmark sets and of the demo.

    Raises:
        DataError: a file is missing or malformed.
    """
    try:
        demo = {f"demo/{frame.name}": partial(_as_png, frame) for frame in open_source("sample:photographs")}
    except SourceError as error:
        raise DataError(str(error)) from None
    return {
        **_archived(data / "flickr8k" / "images_224.zip", _flickr8k(data, "dev") + _flickr8k(data, "test")),
        **_archived(data / "coco_photographs" / coco_photographs.IMAGES, _coco_photographs(data, "dev")),
        **_archived(data / "nyu_rooms" / "images.zip", kept_aside_rooms()),
        **_in_folder(data / "coco_mini", "images"),
        **_in_folder(data / "kitchen_rgbd"),
        **demo,
    }


def _computed(compute: Callable[[NDArray[np.uint8]], NDArray[Any]], photographs: Photographs) -> NDArray[Any]:
    """Compute something of every photograph, at a quarter of its size; the results in one array."""

    def computed(name: str) -> NDArray[Any]:
        return compute(_decoded(name, photographs[name](), cv2.IMREAD_REDUCED_COLOR_4))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(computed, photographs)
        return np.stack(list(tqdm(found, "photographs", len(photographs), unit="photograph", mininterval=1)))


def _decoded(name: str, encoded: bytes, flags: int) -> NDArray[np.uint8]:
    image_bgr = cv2.imdecode(np.frombuffer(encoded, np.uint8), flags)
    if image_bgr is None:
        raise DataError(f"{name} is not an image")
    return image_bgr.astype(np.uint8, copy=False)


def _as_png(frame: Frame) -> bytes:
    return cv2.imencode(".png", frame.image_bgr)[1].tobytes()


def _distances(hashes: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Bits by which photographs (N, 2, 4), mirrored or not, differ from one hash (4,); (N,) int64."""
    return np.bitwise_count(hashes ^ other).sum(axis=2, dtype=np.int64).min(axis=1)


def _thumbnail(image_bgr: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Reduce to medium frequencies: large areas (sky and grass) make unrelated photographs alike."""
    size = (_THUMBNAIL_PX, _THUMBNAIL_PX)
    small = cv2.resize(image_bgr, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    medium = cv2.GaussianBlur(small, (0, 0), 0.8) - cv2.GaussianBlur(small, (0, 0), 3.0)
    medium -= medium.mean(axis=(0, 1))
    return medium / max(float(np.linalg.norm(medium)), 1e-6)


def _correlations(thumbnails: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Correlate (N, 32, 32, 3) with (M, 32, 32, 3), shifted a little or mirrored; the best of each pair, (N, M)."""
    best = np.full((len(thumbnails), len(others)), -1, np.float32)
    flat = others.reshape(len(others), -1).T
    for shift in product(_SHIFTS_PX, _SHIFTS_PX):
        np.maximum(best, np.roll(thumbnails, shift, (1, 2)).reshape(len(thumbnails), -1) @ flat, out=best)
    return np.maximum(best, thumbnails[:, :, ::-1].reshape(len(thumbnails), -1) @ flat)


def _sift(image_bgr: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Find points (N, 2) float32 and their descriptors (N, 128) float32, unit length (Arandjelovic, Zisserman 2012)."""
    grey = cv2.cvtColor(image_bgr, cv2.COLOR_BGR2GRAY)
    scale = min(1.0, _SIFT_PX / max(grey.shape))
    small = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    keypoints, descriptors = cv2.SIFT.create(_SIFT_POINTS).detectAndCompute(small, None)
    if descriptors is None:
        return np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32)
    roots = np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-6))
    return np.array([keypoint.pt for keypoint in keypoints], np.float32), roots.astype(np.float32)


def _fitting_points(
    one: tuple[NDArray[np.float32], NDArray[np.float32]], other: tuple[NDArray[np.float32], NDArray[np.float32]]
) -> int:
    """Count the points of one photograph that one homography maps to their nearest points of the other."""
    if min(len(one[0]), len(other[0])) < 2:
        return 0
    similarity = one[1] @ other[1].T
    nearest = np.argpartition(-similarity, 1, axis=1)[:, :2]
    found = np.take_along_axis(similarity, nearest, axis=1)
    best = found.argmax(axis=1)
    rows = np.arange(len(found))
    # |a - b|^2 = 2 - 2ab for unit vectors.
    near, second = (2 - 2 * np.minimum(found[rows, column], 1) for column in (best, 1 - best))
    kept = np.flatnonzero(near < _RATIO**2 * second)
    if len(kept) < MIN_POINTS:
        return 0
    _, mask = cv2.findHomography(one[0][kept], other[0][nearest[kept, best[kept]]], cv2.RANSAC, 4.0)
    return 0 if mask is None else int(mask.sum())


def _flickr8k(data: Path, split: str) -> list[str]:
    path = data / "flickr8k" / f"{split}.txt"
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _coco_photographs(data: Path, part: str) -> list[str]:
    entries = coco_photographs.read_entries(data / "coco_photographs" / coco_photographs.CAPTIONS)
    return [entry["image"] for entry in entries if entry["part"] == part]


def _archived(path: Path, files: Sequence[str] | None = None) -> Photographs:
    """List photographs of an archive; all for None."""
    archive = PhotographArchive(path)
    names = archive.names if files is None else files
    return {f"{path.parent.name}/{name}": partial(archive.read_encoded, name) for name in names}


def _in_folder(folder: Path, below: str = "") -> Photographs:
    if not (folder / below).is_dir():
        raise DataError(f"{folder / below}: no such folder")
    return {f"{folder.name}/{path.name}": path.read_bytes for path in sorted((folder / below).iterdir())}


def near_duplicates(
    data: DataFolderOption,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="CSV", help="Table of the photographs that are left out.")
    ] = NEAR_DUPLICATES,
) -> None:
    """Find photographs for training that show the same as one of a dev, test or benchmark set, or of the demo.

    No data set of this project has the photographs of the table that is written.
    """
    training, measured = training_photographs(data), measured_photographs(data)
    pairs = [*same_pictures(training, measured), *pictures_of_one_series(training, measured)]
    best: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        key = (pair.photograph, pair.measured)
        best[key] = max(pair, best.get(key, pair), key=lambda found: found.points)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Pair._fields)
    writer.writerows(sorted(best.values()))
    write_text_atomically(output, text.getvalue())
    table = Table()
    for field in Pair._fields:
        table.add_column(field, overflow="fold")
    for pair in sorted(best.values(), key=lambda pair: (-pair.points, pair.distance)):
        table.add_row(*map(str, pair))
    Console().print(table)
    print(f"{len(training)} photographs for training, {len(measured)} measured ones: {len(best)} pairs, in {output}")


def main() -> int:
    return run_command(near_duplicates, "python -m recipes.near_duplicates", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
