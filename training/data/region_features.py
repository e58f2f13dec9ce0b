"""Bottom-up features (Anderson et al. 2018) in the formats in which they are published, read image by image.

The constructors take the path, the width of a feature and the number of regions that are read of an image. They and
``read`` raise :class:`DataError` as :class:`training.data.regions.RegionFeatures` says. Only the rows of the requested
image are read, so a file may be larger than memory. Open a file in the process that reads it.

A feature store (:mod:`training.data.feature_store`) is read many times as fast; `python -m training.features --from`
converts these formats.
"""

import base64
import binascii
import os
import zipfile
from pathlib import Path

import numpy as np

from training.data.regions import Regions, checked_regions
from training.errors import DataError

MAX_REGIONS = 50
"""Regions of an image that M2 reads."""
LONGEST_LINE = 1 << 26
"""Longest line of a TSV file, bytes; 100 regions take 1.1 MB."""
SIZE_KEYS = ("image_w", "image_h")
TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


class Hdf5Features:
    """Datasets ``<image id>_features``, and optionally ``_boxes``, ``_image_w`` and ``_image_h``."""

    def __init__(self, path: Path, width: int, max_regions: int) -> None:
        try:
            import h5py
        except ImportError:
            raise DataError(f"{path}: reading HDF5 needs h5py; `pip install h5py`") from None
        self.path, self.width, self.max_regions = path, width, max_regions
        if not path.is_file():
            raise DataError(f"{path}: no such feature file")
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise DataError(f"{path} is not an HDF5 file, or cut short ({error})") from None
        self._h5py, self._bytes = h5py, path.open("rb")

    def __contains__(self, image: str) -> bool:
        return f"{image}_features" in self._file

    def images(self) -> list[str]:
        return [name.removesuffix("_features") for name in self._file if name.endswith("_features")]

    def read(self, image: str) -> Regions:
        sides = [self._value(image, side) for side in SIZE_KEYS]
        return checked_regions(
            f"{self.path}, image {image}", self.width, self._value(image, "features"), self._value(image, "boxes"),
            None if sides[0] is None or sides[1] is None else (sides[0][()], sides[1][()]),
        )  # fmt: skip

    def _value(self, image: str, kind: str) -> np.ndarray | None:
        """Read a dataset, at most its first ``max_regions`` rows; None if there is none."""
        try:
            dataset = self._h5py.h5d.open(self._file.id, f"{image}_{kind}".encode())
        except KeyError:
            return None
        try:
            shape, offset = dataset.shape, dataset.get_offset()
            values = np.empty((min(shape[0], self.max_regions), *shape[1:]) if shape else (), dataset.dtype)
            if offset is None or values.dtype.hasobject:  # compressed or in chunks, or text
                whole = self._h5py.Dataset(dataset)
                return np.asarray(whole[: self.max_regions] if shape else whole[()])
            # The HDF5 library serves one thread at a time and takes longer.
            if os.preadv(self._bytes.fileno(), [values.data], offset) < values.nbytes:
                raise OSError("the file is cut short")
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{self.path}, image {image}: {kind} cannot be read ({error})") from None
        return values


class NpzFeatures:
    """A folder with a file ``<image id>.npz`` for each image.

    Its arrays are ``features`` or ``x``, and optionally ``boxes`` or ``bbox``, ``image_w`` and ``image_h``.
    """

    def __init__(self, folder: Path, width: int, max_regions: int) -> None:
        self.folder, self.width, self.max_regions = folder, width, max_regions
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
                found = {
                    kind: next((np.asarray(arrays[key][: self.max_regions]) for key in keys if key in arrays), None)
                    for kind, keys in (("features", ("features", "x")), ("boxes", ("boxes", "bbox")))
                }
                sides = [arrays[key] for key in SIZE_KEYS if key in arrays]
        except (OSError, ValueError, EOFError, IndexError, zipfile.BadZipFile) as error:
            raise DataError(f"{where}: not an npz file, or cut short ({error})") from None
        size = (sides[0], sides[1]) if len(sides) == 2 else None
        return checked_regions(where, self.width, found["features"], found["boxes"], size)

    def _path(self, image: str) -> Path:
        return self.folder / f"{image}.npz"


class TsvFeatures:
    """Lines of ``image_id image_w image_h num_boxes boxes features``, the last two base64 of float32 rows.

    The constructor scans the file once and keeps the offset of each image's line.
    """

    def __init__(self, path: Path, width: int, max_regions: int) -> None:
        self.path, self.width, self.max_regions = path, width, max_regions
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
        if not fields[3].isdigit() or not (count := int(fields[3])):
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
