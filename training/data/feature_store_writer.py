"""Writing of a feature store (:mod:`training.data.feature_store`)."""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from smart_caption_ros.files import UNFINISHED, replaced_atomically, write_text_atomically
from training.data.feature_store import COMPLETE, INCOMPLETE, MANIFEST, FeatureStore, shard_file
from training.data.regions import checked_regions
from training.errors import DataError

SHARD_IMAGES = 500


@dataclass(frozen=True)
class StoreReport:
    """Result of filling a store."""

    stored: int
    """Images in the store, of those that it was filled with."""
    broken: Sequence[str]
    """Reasons why images could not be read, one sentence each."""


class StoreWriter:
    """Adds images to a new or an existing store; use it in a ``with`` statement."""

    def __init__(
        self, folder: Path, source: Mapping[str, Any], token_width: int, shard_images: int = SHARD_IMAGES
    ) -> None:
        """
        Args:
            folder: of the store; made where it does not exist.
            source: JSON values that identify what makes the features; an existing store must have the same.
            token_width: width of a feature.
            shard_images: images in a shard. If the process is killed, the shard that is not yet written is lost.

        Raises:
            DataError: the folder holds other files or features of another source, or another process writes to it.
        """
        self.folder, self.token_width, self.shard_images = folder, token_width, shard_images
        self._manifest = {"format_version": COMPLETE, "token_width": token_width, "source": dict(source)}
        if not folder.exists():
            folder.mkdir(parents=True)
        elif not (folder / MANIFEST).exists() and any(folder.iterdir()):
            raise DataError(f"{folder} exists and is not a feature store; it is left alone")
        self._lock = _lock(folder)
        try:
            if not (folder / MANIFEST).exists():
                _write_json(folder / MANIFEST, self._manifest)
            existing = FeatureStore(folder)
            if (existing.source, existing.width) != (self._manifest["source"], token_width):
                raise DataError(f"{folder} holds features of another source, {existing.source}; give another folder")
            # The lock excludes another writer, so these files are a killed writer's.
            for unfinished in folder.glob(f"*{UNFINISHED}"):
                unfinished.unlink()
        except BaseException:
            os.close(self._lock)
            raise
        self._manifest["format_version"] = existing.version
        self._known = set(existing.images())
        self._next_shard = existing.shards
        self._images: list[dict[str, Any]] = []
        self._tokens: list[np.ndarray] = []
        self._boxes: list[np.ndarray] = []

    def __contains__(self, image: str) -> bool:
        return image in self._known

    def add(
        self, image: str, tokens: np.ndarray, boxes_xyxy: np.ndarray | None, width: int | None, height: int | None
    ) -> None:
        """Add an image; it is on disk after the next :meth:`flush`.

        Args:
            image: image id.
            tokens: (n, token_width), n at least 1.
            boxes_xyxy: (n, 4), pixels of the photograph, or fractions of it where its size is unknown; None where the
                boxes are unknown.
            width: of the photograph, pixels; None where unknown.
            height: of the photograph, pixels; None where unknown.

        Raises:
            DataError: the image is in the store already, or its features are malformed or beyond float16.
        """
        where = f"{self.folder}, image {image}"
        if image in self._known:
            raise DataError(f"{where}: it is in the store already")
        with np.errstate(over="ignore"):  # checked_regions refuses infinity
            halves = np.asarray(tokens).astype(np.float16)
        size = None if width is None and height is None else (width, height)
        checked = checked_regions(where, self.token_width, halves, boxes_xyxy, size)
        entry: dict[str, Any] = {"id": image, "rows": len(halves), "width": width, "height": height}
        boxes = np.zeros((len(halves), 4), np.float32)
        if checked.boxes_xyxy is None:
            entry["boxes"] = False
        else:
            boxes[:] = boxes_xyxy
        self._known.add(image)
        self._images.append(entry)
        self._tokens.append(halves)
        self._boxes.append(boxes)
        if len(self._images) >= self.shard_images:
            self.flush()

    def flush(self) -> None:
        """Write the images that were added since the last call as a shard."""
        if not self._images:
            return
        incomplete = any(entry["width"] is None or "boxes" in entry for entry in self._images)
        if incomplete and self._manifest["format_version"] == COMPLETE:
            self._manifest["format_version"] = INCOMPLETE
            _write_json(self.folder / MANIFEST, self._manifest)
        for kind, arrays in (("tokens.npy", self._tokens), ("boxes.npy", self._boxes)):
            path = shard_file(self.folder, self._next_shard, kind)
            with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
                np.save(stream, np.concatenate(arrays))
        _write_json(shard_file(self.folder, self._next_shard, "json"), {"images": self._images})
        self._next_shard += 1
        self._images, self._tokens, self._boxes = [], [], []

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Only complete images were added, so they are kept after an error as well.
        try:
            self.flush()
        finally:
            os.close(self._lock)


def _lock(folder: Path) -> int:
    """Open a descriptor that excludes other writers until it is closed or its process ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise DataError(f"{folder} is being written by another process") from None
    return descriptor


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    write_text_atomically(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
