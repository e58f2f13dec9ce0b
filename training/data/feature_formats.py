"""The formats in which features of images are stored, by the names that an experiment gives them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from training.data.feature_store import FeatureStore
from training.data.region_features import Hdf5Features, NpzFeatures, RegionFeatures, Regions, TsvFeatures
from training.errors import DataError

FEATURE_KINDS: dict[str, Callable[[Path, int, int], RegionFeatures]] = {
    "store": lambda path, width, max_regions: FeatureStore(path),  # it knows its width, and holds what is to be read
    "hdf5": Hdf5Features,
    "tsv": TsvFeatures,
    "npz": NpzFeatures,
}
"""Called with the path, the width of a feature and how many regions are read of an image."""


class SeveralFiles:
    """Features of different images in different files, as the TSV files were published."""

    def __init__(self, files: Sequence[RegionFeatures], width: int) -> None:
        self.files, self.width = files, width

    def __contains__(self, image: str) -> bool:
        return any(image in file for file in self.files)

    def read(self, image: str) -> Regions:
        for file in self.files[:-1]:
            if image in file:
                return file.read(image)
        return self.files[-1].read(image)


def open_features(kind: str, paths: Sequence[Path], width: int, max_regions: int) -> RegionFeatures:
    """Open features of a kind of :data:`FEATURE_KINDS`.

    Args:
        paths: one, or several that hold different images.
        width, max_regions: of the published formats: of a feature, and read of an image; the rest is left out, in
            file order.

    Raises:
        DataError: no such file, or not of that kind.
    """
    files = [FEATURE_KINDS[kind](path, width, max_regions) for path in paths]
    return files[0] if len(files) == 1 else SeveralFiles(files, width)


def check_images(features: RegionFeatures, images: Sequence[str], where: str) -> None:
    """
    Raises:
        DataError: an image has no features; says how many lack them and names one.
    """
    if missing := [image for image in images if image not in features]:
        hint = "; its image ids are of another kind" if len(missing) == len(images) else ""
        raise DataError(f"{where}: no features of {len(missing)} images, for example image {missing[0]}{hint}")
