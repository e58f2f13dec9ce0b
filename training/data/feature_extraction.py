"""Features for a feature store: of photographs by a bundle or a backbone, or converted from published files.

Features of photographs are the tokens of the graph or their means inside a detector's boxes. Unlike bottom-up
attention, the boxes come from any ONNX detector; the first token covers the whole photograph, so that an image without
objects has one.

Files that are missing or malformed, and a store with features of another source, are a :class:`DataError`; an engine
that fails is an EngineError.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from tqdm import tqdm

from smart_caption_ros.captioning.bundle import VISION_GRAPH, VisionBundle
from smart_caption_ros.captioning.vision import Vision, grid_boxes, token_boxes
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.engines import create_engine
from smart_caption_ros.files import sha256_of
from training.data.feature_store import SHARD_IMAGES, StoreReport, StoreWriter
from training.data.loading import load_ahead, loading_threads
from training.data.photographs import read_photograph, visible_files
from training.data.regions import Regions
from training.data.stored_features import open_features
from training.data.visual_inputs import fingerprint
from training.errors import DataError
from training.vision.released_weights import open_backbone

Value = TypeVar("Value")


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


VISION_GRAPH_TOKENS, BACKBONE_TOKENS = "vision graph", "backbone"
"""Values of ``made_by`` in the source of a store whose features are the tokens of a bundle, or of a named backbone."""
MAX_OBJECTS = 49
"""Most boxes of a detector that make tokens of a photograph; one more token is of the whole photograph."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
"""File names of photographs."""


Ids: TypeAlias = Literal["name", "stem", "number"]
"""Rules for image ids: the file name, the name without suffix, or the number at the end of that."""


class BackboneExtractor:
    """Computes the tokens of photographs by a backbone with torch, on a GPU if there is one."""

    def __init__(self, name: str, data: Path) -> None:
        """Read a backbone; a BackboneError says that it is missing or malformed."""
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._backbone = open_backbone(name, data / "backbones").requires_grad_(False).to(self._device)
        self._spec = self._backbone.spec
        self._grid_boxes = grid_boxes(self._spec.rows, self._spec.columns, self._spec.before)
        self.token_width = self._spec.token_width
        self.source: dict[str, Any] = {
            "made_by": BACKBONE_TOKENS, "backbone": name, "weights_sha256": fingerprint(self._backbone),
        }  # fmt: skip
        """Identifies what makes the features, for the store."""

    def extract(self, frames_bgr: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Compute the features of frames, (H, W, 3) uint8 each.

        Yields:
            For each frame the tokens (n, token width) float32 and their boxes (n, 4) float32 in pixels.
        """
        spec = self._spec
        frames = np.stack([spec.preprocessing.apply(frame) for frame in frames_bgr])
        with torch.inference_mode():
            tokens = self._backbone.tokens(torch.from_numpy(frames).to(self._device)).float().cpu().numpy()
        for frame, own in zip(frames_bgr, tokens, strict=True):
            height, width = frame.shape[:2]
            yield own, token_boxes(self._grid_boxes, spec.preprocessing, width, height)


class BundleExtractor:
    """Computes the tokens of photographs by a vision graph, or their means inside a detector's boxes."""

    def __init__(
        self,
        bundle: Path | None,
        engine: str = "auto",
        threads: int | None = None,
        detector: Path | None = None,
        minimum_score: float = 0.0,
    ) -> None:
        """Load the vision graph of a bundle, by default of the one that ships with the package, into an engine.
        ``detector``: ONNX file; the tokens inside its boxes with a score of ``minimum_score`` are pooled.

        Raises:
            BundleError: the bundle is missing or wrong.
            DataError: the vision graph sees a part of the photograph alone, so that boxes may have no tokens.
            DetectorError: the detector is missing, or its layout is unknown.
            EngineError: the engine is unknown or does not work on this machine.
        """
        self.bundle = VisionBundle.load(bundle)
        self.token_width = self.bundle.token_width
        self._vision = Vision(self.bundle, create_engine(engine, threads))
        self._grid_boxes = grid_boxes(*self.bundle.grid, self.bundle.tokens_before_grid)
        self.source: dict[str, Any] = {
            "made_by": VISION_GRAPH_TOKENS,
            "bundle": self.bundle.name,
            "vision_sha256": self.bundle.manifest["files"][VISION_GRAPH]["sha256"],
        }
        self._detector: Detector | None = None
        if detector is None:
            return
        if self.bundle.preprocessing.shorter_side is not None:
            raise DataError(f"{self.bundle.name} crops photographs, so that --detector has no tokens for every box")
        self._detector = Detector.from_onnx(detector, engine, threads, minimum_score)
        self.source |= {
            "made_by": "the regions of a detector",
            "detector": detector.name,
            "detector_sha256": sha256_of(detector),
            "minimum_score": minimum_score,
        }

    def extract(self, frames_bgr: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Compute the features of frames, as :meth:`BackboneExtractor.extract` does."""
        bundle = self.bundle
        grids = self._vision.tokens(np.concatenate([self._vision.preprocess(frame) for frame in frames_bgr]))
        for frame, tokens in zip(frames_bgr, grids, strict=True):
            height, width = frame.shape[:2]
            if self._detector is None:
                yield tokens, token_boxes(self._grid_boxes, bundle.preprocessing, width, height)
            else:
                # The token of the whole photograph comes first; detections are ordered by score.
                regions = [detection.box_xyxy for detection in self._detector.detect(frame)[:MAX_OBJECTS]]
                yield pool_regions(tokens[bundle.tokens_before_grid :], bundle.grid, regions, width, height)


def fill_store(
    extractor: BackboneExtractor | BundleExtractor,
    photographs: Mapping[str, Path],
    store: Path,
    *,
    batch_size: int = 16,
    save_every: int = SHARD_IMAGES,
) -> StoreReport:
    """Add the features of the photographs that a store does not contain; photographs that cannot be read are skipped.

    Args:
        photographs: files by image id.
        store: folder of the store; an existing store is continued.
        save_every: photographs in a shard. If the process is killed, those that are not yet written are lost.
    """
    broken: list[str] = []
    with StoreWriter(store, extractor.source, extractor.token_width, save_every) as writer:
        todo = [image for image in photographs if image not in writer]
        done = len(photographs) - len(todo)
        progress = tqdm(total=len(photographs), initial=done, desc="features", unit="image")

        def read_one(image: str) -> np.ndarray | str:
            return _or_reason(read_photograph, photographs[image], image)

        with progress, closing(load_ahead(read_one, todo, loading_threads(1))) as ahead:
            for start in range(0, len(todo), batch_size):
                batch = todo[start : start + batch_size]
                read = dict(zip(batch, ahead, strict=False))
                broken += [reason for reason in read.values() if isinstance(reason, str)]
                frames = {image: frame for image, frame in read.items() if isinstance(frame, np.ndarray)}
                features = extractor.extract(list(frames.values())) if frames else ()
                for (image, frame), (tokens, boxes) in zip(frames.items(), features, strict=True):
                    writer.add(image, tokens, boxes, width=frame.shape[1], height=frame.shape[0])
                progress.update(len(batch))
    return StoreReport(len(photographs) - len(broken), broken)


def find_photographs(folder: Path, ids: Ids) -> dict[str, Path]:
    """Find the photographs in a folder and its subfolders, by image id and in the order of their paths."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    photographs: dict[str, Path] = {}
    for path in (path for path in visible_files(folder) if path.suffix.lower() in SUFFIXES):
        image = _image_id(path, ids)
        if image in photographs:
            raise DataError(f"{path}: image id {image} is that of {photographs[image]} as well; --ids chooses others")
        photographs[image] = path
    if not photographs:
        raise DataError(f"{folder}: no photographs in it ({', '.join(SUFFIXES)})")
    return photographs


def _image_id(path: Path, ids: Ids) -> str:
    if ids == "name":
        return path.name
    if ids == "stem":
        return path.stem
    if (number := re.search(r"\d+$", path.stem)) is None:
        raise DataError(f"{path}: its name does not end in a number; --ids chooses other image ids")
    return str(int(number[0]))


def _or_reason(call: Callable[..., Value], *arguments: Any) -> Value | str:
    """Return the result of a call, or the message of its :class:`DataError`."""
    try:
        return call(*arguments)
    except DataError as error:
        return str(error)


_MOST_BROKEN = 20
"""Number of broken images before the first intact one that ends a conversion: the files have another format."""


def convert_features(
    kind: str,
    paths: Sequence[Path],
    store: Path,
    width: int,
    max_regions: int,
    save_every: int = SHARD_IMAGES,
    image_sizes: Sequence[Path] = (),
) -> StoreReport:
    """Add the images of feature files that a store does not contain; images that cannot be read are skipped.

    Args:
        kind: format of the files, a key of :data:`training.data.regions.FORMATS`.
        paths: one file or folder, or several that hold different images.
        store: folder of the store; an existing store is continued.
        max_regions: how many regions of an image are kept, in file order; 0: all.
        save_every: images in a shard. If the process is killed, those that are not yet written are lost.
        image_sizes: annotation files with the sizes of images, for formats that may lack them.
    """
    features = open_features(kind, paths, width, max_regions, image_sizes)
    source = {
        "made_by": "published features",
        "format": kind,
        "files": [path.name for path in paths],
        "max_regions": max_regions,
    }

    if not (images := features.images()):
        raise DataError(f"{', '.join(map(str, paths))}: no features in it")
    broken: list[str] = []
    with StoreWriter(store, source, width, save_every) as writer:
        todo = [image for image in images if image not in writer]
        progress = tqdm(todo, desc="features", unit="image", initial=len(images) - len(todo), total=len(images))
        with closing(load_ahead(partial(_or_reason, features.read), todo, loading_threads(1))) as read_ahead:
            for tried, (image, regions) in enumerate(zip(progress, read_ahead, strict=True), 1):
                reason = regions if isinstance(regions, str) else _or_reason(_add, writer, image, regions)
                if reason is not None:
                    broken.append(reason)
                if len(broken) == tried == _MOST_BROKEN:
                    raise DataError(f"the first {_MOST_BROKEN} images cannot be read: {broken[0]}")
    return StoreReport(len(images) - len(broken), broken)


def _add(writer: StoreWriter, image: str, regions: Regions) -> None:
    width, height = regions.image_size or (None, None)
    boxes = regions.boxes_xyxy
    if boxes is not None and regions.image_size is not None:
        boxes = boxes * np.array(regions.image_size * 2, np.float32)
    writer.add(image, regions.features, boxes, width, height)
