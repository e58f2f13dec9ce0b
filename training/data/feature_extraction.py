"""Extraction of features of photographs by the vision graph of a bundle, into a feature store."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from smart_caption_ros.captioning import Bundle
from smart_caption_ros.captioning.bundle import VISION_GRAPH
from smart_caption_ros.captioning.vision import Vision
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.engines import create_engine
from smart_caption_ros.files import sha256_of
from training.data.feature_store_writer import SHARD_IMAGES, StoreReport, StoreWriter
from training.data.photographs import read_photograph
from training.data.region_features import MAX_REGIONS
from training.data.region_tokens import pool_regions
from training.errors import DataError

VISION_GRAPH_TOKENS = "vision graph"
"""Value of ``made_by`` in the source of a store whose features are the tokens of a bundle."""
REGION_TOKENS = "the regions of a detector"
"""Value of ``made_by`` in the source of a store whose features are a bundle's tokens, pooled inside a detector's
boxes."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
"""File names of photographs."""


class Ids(str, Enum):
    """How file names become image ids: the whole name, the name without suffix, or the number at the end of that."""

    NAME = "name"
    STEM = "stem"
    NUMBER = "number"


class FeatureExtractor:
    """Computes the features of photographs: the tokens of a vision graph, or their means inside a detector's boxes."""

    def __init__(self, bundle: Path | None, engine: str = "auto", threads: int | None = None) -> None:
        """
        Args:
            bundle: folder; None takes the bundle that ships with the package.
            engine: name of the engine.
            threads: CPU threads of the engine; None leaves the choice to it.

        Raises:
            BundleError: the bundle is missing or wrong.
            EngineError: the engine is unknown or does not work on this machine.
        """
        self.bundle = Bundle.load(bundle)
        self._vision = Vision(self.bundle, create_engine(engine, threads))
        self._engine, self._threads = engine, threads
        self._detector: Detector | None = None
        self.source: dict[str, Any] = {
            "made_by": VISION_GRAPH_TOKENS,
            "bundle": self.bundle.name,
            "vision_sha256": self.bundle.manifest["files"][VISION_GRAPH]["sha256"],
        }
        """Identifies what makes the features, for the store."""

    def pool_inside_boxes(self, detector: Path, minimum_score: float) -> None:
        """Pool the tokens inside the boxes of a detector from now on.

        Args:
            detector: ONNX file.
            minimum_score: lowest score of a region, from 0 to 1.

        Raises:
            DetectorError: the detector is missing, or its layout is unknown.
        """
        self._detector = Detector.from_onnx(detector, self._engine, self._threads, minimum_score)
        self.source |= {
            "made_by": REGION_TOKENS,
            "detector": detector.name,
            "detector_sha256": sha256_of(detector),
            "minimum_score": minimum_score,
        }

    def extract(self, frames_bgr: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Compute the features of frames.

        Args:
            frames_bgr: (H, W, 3) uint8 each.

        Yields:
            For each frame the tokens (n, token width) float32 and their boxes (n, 4) float32 in pixels.

        Raises:
            EngineError: the engine failed.
        """
        grids = self._vision.tokens(np.concatenate([self._vision.preprocess(frame) for frame in frames_bgr]))
        for frame, tokens in zip(frames_bgr, grids, strict=True):
            height, width = frame.shape[:2]
            if self._detector is None:
                yield tokens, self._vision.boxes(width, height)
            else:
                # The token of the whole photograph comes first; detections are ordered by score.
                regions = [found.box_xyxy for found in self._detector.detect(frame)[: MAX_REGIONS - 1]]
                yield pool_regions(tokens, self.bundle.grid, regions, width, height)


def fill_store(
    extractor: FeatureExtractor,
    photographs: Mapping[str, Path],
    store: Path,
    *,
    batch_size: int = 16,
    save_every: int = SHARD_IMAGES,
) -> StoreReport:
    """Add the features of the photographs that a store does not contain; photographs that cannot be read are skipped.

    Args:
        extractor: computes the features.
        photographs: files by image id.
        store: folder of the store; an existing store is continued.
        batch_size: photographs that are read and computed at once.
        save_every: photographs in a shard. If the process is killed, those that are not yet written are lost.

    Raises:
        DataError: the store contains features of another source.
        EngineError: the engine failed.
    """
    broken: list[str] = []
    writing = StoreWriter(store, extractor.source, extractor.bundle.token_width, save_every)
    with writing as writer, ThreadPoolExecutor() as readers:
        todo = [image for image in photographs if image not in writer]
        done = len(photographs) - len(todo)
        with tqdm(total=len(photographs), initial=done, desc="features", unit="image") as progress:
            for start in range(0, len(todo), batch_size):
                batch = todo[start : start + batch_size]
                results = readers.map(lambda image: _try_to_read(photographs[image], image), batch)
                read = dict(zip(batch, results, strict=True))
                broken += [reason for reason in read.values() if isinstance(reason, str)]
                frames = {image: frame for image, frame in read.items() if isinstance(frame, np.ndarray)}
                features = extractor.extract(list(frames.values())) if frames else ()
                for (image, frame), (tokens, boxes) in zip(frames.items(), features, strict=True):
                    writer.add(image, tokens, boxes, width=frame.shape[1], height=frame.shape[0])
                progress.update(len(batch))
    return StoreReport(len(photographs) - len(broken), broken)


def find_photographs(folder: Path, ids: Ids) -> dict[str, Path]:
    """Find the photographs in a folder and its subfolders, by image id and in the order of their paths.

    Raises:
        DataError: the folder does not exist or has no photographs, the file name does not end in the number that is
            the image id, or two photographs have one id.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    photographs: dict[str, Path] = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES):
        image = _image_id(path, ids)
        if image in photographs:
            raise DataError(f"{path}: image id {image} is that of {photographs[image]} as well; --ids chooses others")
        photographs[image] = path
    if not photographs:
        raise DataError(f"{folder}: no photographs in it ({', '.join(SUFFIXES)})")
    return photographs


def _image_id(path: Path, ids: Ids) -> str:
    if ids == Ids.NAME:
        return path.name
    if ids == Ids.STEM:
        return path.stem
    if (number := re.search(r"\d+$", path.stem)) is None:
        raise DataError(f"{path}: its name does not end in a number; --ids chooses other image ids")
    return str(int(number[0]))


def _try_to_read(path: Path, image: str) -> np.ndarray | str:
    """Read a photograph, or return the reason why it cannot be read."""
    try:
        return read_photograph(path, image)
    except DataError as error:
        return str(error)
