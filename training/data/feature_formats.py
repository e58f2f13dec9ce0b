"""The formats of stored features, by their names in an experiment file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from training.data.feature_store import FeatureStore
from training.data.region_features import Hdf5Features, NpzFeatures, TsvFeatures
from training.data.regions import RegionFeatures, Regions
from training.errors import DataError

FEATURE_KINDS: dict[str, Callable[[Path, int, int], RegionFeatures]] = {
    "store": lambda path, width, max_regions: FeatureStore(path),  # its manifest has the width; all rows are read
    "hdf5": Hdf5Features,
    "tsv": TsvFeatures,
    "npz": NpzFeatures,
}
"""Constructors, called with the path, the width of a feature and the number of regions that are read of an image."""


class SeveralFiles:
    """Features of several files with different images, such as the published TSV files; a :class:`RegionFeatures`."""

    def __init__(self, files: Sequence[RegionFeatures], width: int) -> None:
        self.files, self.width = files, width

    def __contains__(self, image: str) -> bool:
        return any(image in file for file in self.files)

    def images(self) -> list[str]:
        return [image for file in self.files for image in file.images()]

    def read(self, image: str) -> Regions:
        for file in self.files[:-1]:
            if image in file:
                return file.read(image)
        return self.files[-1].read(image)


def open_features(kind: str, paths: Sequence[Path], width: int, max_regions: int) -> RegionFeatures:
    """Open stored features.

    Args:
        kind: a key of :data:`FEATURE_KINDS`.
        paths: one file or folder, or several that hold different images.
        width: width of a feature; the store has its own.
        max_regions: how many regions of an image are read, in file order; of the store all are read.

    Raises:
        DataError: a file is missing or of another format.
    """
    files = [FEATURE_KINDS[kind](path, width, max_regions) for path in paths]
    return files[0] if len(files) == 1 else SeveralFiles(files, width)


def check_images(features: RegionFeatures, images: Sequence[str], where: str) -> None:
    """Check that all images have features.

    Args:
        features: of the images.
        images: image ids.
        where: beginning of the message.

    Raises:
        DataError: an image has no features; says how many lack them and names one.
    """
    if missing := [image for image in images if image not in features]:
        hint = "; its image ids are of another kind" if len(missing) == len(images) else ""
        raise DataError(f"{where}: no features of {len(missing)} images, for example image {missing[0]}{hint}")
