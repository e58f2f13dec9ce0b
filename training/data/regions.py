"""Bottom-up features (Anderson et al. 2018) in the formats in which they are published, read image by image.

The constructors take the path, the width of a feature, the number of regions that are read of an image (0: all), and
sizes by image id of the images whose size the files lack. They and ``read`` raise :class:`DataError` as
:class:`RegionFeatures` says. Only the rows of the requested image are read, so a file may be larger than memory. Open a
file in the process that reads it.

A feature store (:mod:`training.data.feature_store`) is read many times as fast; `python -m training.features --from`
converts these formats.
"""

import base64
import binascii
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from training.errors import DataError
from training.models.captioner import Visual

Size = tuple[int, int]
"""Width and height of an image, pixels."""


@dataclass(frozen=True)
class Regions:
    """Regions of an image, in file order."""

    features: NDArray[np.floating]
    """(n, width) float32; float16 as a feature store has them."""
    boxes_xyxy: NDArray[np.float32] | None = None
    """(n, 4), fractions of the image's width and height; None where the file has no boxes, or has them in pixels
    without the image's size."""
    image_size: Size | None = None
    """Width and height of the image, pixels; None where the file does not give it."""


class RegionFeatures(Protocol):
    """Features by image id."""

    width: int
    """Width of a feature."""

    def __contains__(self, image: str) -> bool: ...

    def images(self) -> list[str]:
        """List the image ids, in file order."""
        ...

    def read(self, image: str) -> Regions:
        """Read the regions of an image.

        Raises:
            DataError: the image is missing, or its features are malformed; names the file, the id and the reason.
        """
        ...


def checked_regions(
    where: str,
    width: int,
    features: Any,
    boxes: Any,
    image_size: tuple[Any, Any] | None = None,
) -> Regions:
    """Check the arrays of an image and make :class:`Regions` of them.

    Args:
        where: file and image id, the beginning of the message.
        features: (n, width) array.
        boxes: (n, 4) array, or None. Pixels where ``image_size`` is given. Where it is not, boxes that lie between
            0 and 1 are fractions, and others are dropped.
        image_size: width and height of the image in pixels, or None.

    Raises:
        DataError: no features, other shapes, or numbers that are not finite.
    """
    if features is None:
        raise DataError(f"{where}: it has no features")
    features = _finite(where, "features", features)
    if features.ndim != 2 or not len(features):
        raise DataError(f"{where}: features have the shape {features.shape} instead of (regions, {width})")
    if features.shape[1] != width:
        raise DataError(f"{where}: features are {features.shape[1]} wide instead of {width}")
    size = None if image_size is None else _checked_size(where, image_size)
    if boxes is not None:
        boxes = _finite(where, "boxes", boxes)
        if boxes.shape != (len(features), 4):
            raise DataError(f"{where}: boxes have the shape {boxes.shape} instead of ({len(features)}, 4)")
        if size is not None:
            boxes = boxes / np.array(size * 2, np.float32)
        elif boxes.min() < 0 or boxes.max() > 1:
            boxes = None
    return Regions(features, boxes, size)


def _checked_size(where: str, image_size: tuple[Any, Any]) -> Size:
    try:
        width, height = (int(side) for side in image_size)
    except (TypeError, ValueError, OverflowError):
        width = height = 0
    if width < 1 or height < 1:
        given = " x ".join(
            side.decode(errors="replace") if isinstance(side, bytes) else str(side) for side in image_size
        )
        raise DataError(f"{where}: the size of the image is {given!r}")
    return width, height


def _finite(where: str, name: str, values: np.ndarray) -> NDArray[np.float32]:
    try:
        numbers = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(f"{where}: {name} are no numbers") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{where}: {name} contain NaN or infinity")
    return numbers


def pad_regions(regions: Sequence[Regions]) -> Visual:
    """Make a batch of the regions of B images, padded with zeros to the N regions of the image with most.

    The boxes are None where any of the images has none.
    """
    counts = np.array([len(image.features) for image in regions])
    most = int(counts.max())
    tokens = np.zeros((len(regions), most, regions[0].features.shape[1]), regions[0].features.dtype)
    boxes = np.zeros((len(regions), most, 4), np.float32)
    for row, image in enumerate(regions):
        tokens[row, : counts[row]] = image.features
        if image.boxes_xyxy is not None:
            boxes[row, : counts[row]] = image.boxes_xyxy
    return Visual(
        tokens=torch.from_numpy(tokens),
        mask=None if (counts == most).all() else torch.from_numpy(np.arange(most) < counts[:, None]),
        boxes_xyxy=None if any(image.boxes_xyxy is None for image in regions) else torch.from_numpy(boxes),
    )


LONGEST_LINE = 1 << 26
"""Longest line of a TSV file, bytes; 100 regions take 1.1 MB."""
SIZE_KEYS = ("image_w", "image_h")
TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


class Hdf5Features:
    """Datasets ``<image id>_features``, and optionally ``_boxes``, ``_image_w`` and ``_image_h``.

    The last two may also come from ``image_sizes``, by image id.
    """

    def __init__(self, path: Path, width: int, max_regions: int, image_sizes: Mapping[str, Size]) -> None:
        try:
            import h5py
        except ImportError:
            raise DataError(f"{path}: reading HDF5 needs h5py; `pip install h5py`") from None
        self.path, self.width, self.max_regions, self._sizes = path, width, max_regions or None, image_sizes
        if not path.is_file():
            raise DataError(f"{path}: no such feature file")
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise DataError(f"{path} is not an HDF5 file, or cut short ({error})") from None

    def __contains__(self, image: str) -> bool:
        return f"{image}_features" in self._file

    def images(self) -> list[str]:
        return [name.removesuffix("_features") for name in self._file if name.endswith("_features")]

    def read(self, image: str) -> Regions:
        sides = [self._value(image, side) for side in SIZE_KEYS]
        return checked_regions(
            f"{self.path}, image {image}", self.width, self._value(image, "features"), self._value(image, "boxes"),
            self._sizes.get(image) if sides[0] is None or sides[1] is None else (sides[0][()], sides[1][()]),
        )  # fmt: skip

    def _value(self, image: str, kind: str) -> np.ndarray | None:
        """Read a dataset, at most its first ``max_regions`` rows; None if there is none."""
        if (dataset := self._file.get(f"{image}_{kind}")) is None:
            return None
        try:
            return np.asarray(dataset[: self.max_regions] if dataset.shape else dataset[()])
        except (AttributeError, OSError, ValueError, TypeError) as error:  # AttributeError: a group
            raise DataError(f"{self.path}, image {image}: {kind} cannot be read ({error})") from None


class NpzFeatures:
    """A folder with a file ``<image id>.npz`` for each image.

    Its arrays are ``features`` or ``x``, and optionally ``boxes`` or ``bbox``, ``image_w`` and ``image_h``. The last
    two may also come from ``image_sizes``, by image id.
    """

    def __init__(self, folder: Path, width: int, max_regions: int, image_sizes: Mapping[str, Size]) -> None:
        self.folder, self.width, self.max_regions, self._sizes = folder, width, max_regions or None, image_sizes
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder of features")

    def __contains__(self, image: str) -> bool:
        return self._path(image).is_file()

    def images(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.npz"))

    def read(self, image: str) -> Regions:
        path = self._path(image)
        where = f"{path}, image {image}"
        if not path.is_file():
            raise DataError(f"{where}: no such file")
        try:
            with np.load(path, allow_pickle=False) as arrays:
                read = {
                    kind: next((np.asarray(arrays[key][: self.max_regions]) for key in keys if key in arrays), None)
                    for kind, keys in (("features", ("features", "x")), ("boxes", ("boxes", "bbox")))
                }
                sides = [arrays[key] for key in SIZE_KEYS if key in arrays]
        except (OSError, ValueError, EOFError, IndexError, TypeError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{where}: not an npz file, or cut short ({error})") from None
        size = (sides[0], sides[1]) if len(sides) == 2 else self._sizes.get(image)
        return checked_regions(where, self.width, read["features"], read["boxes"], size)

    def _path(self, image: str) -> Path:
        return self.folder / f"{image}.npz"


class TsvFeatures:
    """Lines of ``image_id image_w image_h num_boxes boxes features``, the last two base64 of float32 rows.

    The constructor scans the file once and keeps the offset of each image's line, which has the size of the image.
    """

    def __init__(self, path: Path, width: int, max_regions: int, image_sizes: Mapping[str, Size]) -> None:
        self.path, self.width, self.max_regions = path, width, max_regions or None
        if not path.is_file():
            raise DataError(f"{path}: no such feature file")
        if not path.stat().st_size:
            raise DataError(f"{path} is empty")
        self._bytes = path.open("rb")
        self._lines = self._index()

    def _index(self) -> dict[str, tuple[int, int]]:
        lines: dict[str, tuple[int, int]] = {}
        start = 0
        for number, line in enumerate(iter(lambda: self._bytes.readline(LONGEST_LINE), b""), 1):
            if len(line) == LONGEST_LINE:
                raise DataError(f"{self.path}, line {number}: it has no end; this is no feature file")
            image, tab, _ = line.partition(b"\t")
            if not tab and line.strip():
                raise DataError(f"{self.path}, line {number}: no tab; expected {', '.join(TSV_FIELDS)}")
            if tab and (name := image.decode(errors="replace")) in lines:
                raise DataError(f"{self.path}, line {number}: image {name} is in the file twice")
            if tab:
                lines[name] = (start, len(line))
            start += len(line)
        return lines

    def __contains__(self, image: str) -> bool:
        return image in self._lines

    def images(self) -> list[str]:
        return list(self._lines)

    def read(self, image: str) -> Regions:
        where = f"{self.path}, image {image}"
        if image not in self._lines:
            raise DataError(f"{where}: it has no features")
        start, length = self._lines[image]
        fields = os.pread(self._bytes.fileno(), length, start).rstrip(b"\r\n").split(b"\t")
        if len(fields) != len(TSV_FIELDS):
            raise DataError(f"{where}: {len(fields)} fields instead of {len(TSV_FIELDS)} ({', '.join(TSV_FIELDS)})")
        if not fields[3].isdigit() or len(fields[3]) > 9 or not (count := int(fields[3])):
            raise DataError(f"{where}: num_boxes is {fields[3].decode(errors='replace')!r}")
        boxes = self._decode(where, "boxes", fields[4], count)
        features = self._decode(where, "features", fields[5], count)
        return checked_regions(
            where, self.width, features[: self.max_regions], boxes[: self.max_regions], (fields[1], fields[2])
        )

    def _decode(self, where: str, name: str, field: bytes, count: int) -> np.ndarray:
        try:
            values = np.frombuffer(base64.b64decode(field, validate=True), dtype="<f4")
            return values.reshape(count, -1)
        except (binascii.Error, ValueError) as error:
            raise DataError(f"{where}: {name} are not base64 of {count} float32 rows ({error})") from None


FORMATS: dict[str, Callable[[Path, int, int, Mapping[str, Size]], RegionFeatures]] = {
    "hdf5": Hdf5Features,
    "tsv": TsvFeatures,
    "npz": NpzFeatures,
}
"""Readers of the published formats by the names that experiments give them."""
