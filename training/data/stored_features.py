"""Visual tokens that are read from files: their formats by name, padded batches, and the inputs of an experiment."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from smart_caption_ros.files import sha256_of_bytes
from training.configs.schema import FeaturesConfig, PhaseConfig
from training.data.coco import read_image_sizes
from training.data.feature_store import FeatureStore
from training.data.regions import Hdf5Features, NpzFeatures, RegionFeatures, Regions, Size, TsvFeatures
from training.data.visual_batches import VisualBatch
from training.errors import DataError
from training.models.attention import converted_for_products
from training.models.captioner import Captioner, Visual

FEATURE_KINDS: dict[str, Callable[[Path, int, int, Mapping[str, Size]], RegionFeatures]] = {
    # The manifest of a store has the width; all rows are read.
    "store": lambda path, width, max_regions, image_sizes: FeatureStore(path),
    "hdf5": Hdf5Features,
    "tsv": lambda path, width, max_regions, image_sizes: TsvFeatures(path, width, max_regions),
    "npz": NpzFeatures,
}
"""Constructors, called with the path, the width of a feature, the number of regions that are read of an image, and
image sizes by image id, which a store and TSV files have themselves."""


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


def open_features(
    kind: str, paths: Sequence[Path], width: int, max_regions: int, image_sizes: Sequence[Path] = ()
) -> RegionFeatures:
    """Open stored features.

    Args:
        kind: a key of :data:`FEATURE_KINDS`.
        paths: one file or folder, or several that hold different images.
        width: width of a feature; the store has its own.
        max_regions: how many regions of an image are read, in file order; of the store all are read.
        image_sizes: annotation files with the sizes of images, for formats that may lack them.

    Raises:
        DataError: a file is missing or of another format.
    """
    sizes = read_image_sizes(image_sizes)
    files = [FEATURE_KINDS[kind](path, width, max_regions, sizes) for path in paths]
    return files[0] if len(files) == 1 else SeveralFiles(files, width)


def check_images(features: RegionFeatures, images: Sequence[str], where: str) -> None:
    """Check that all images have features.

    Raises:
        DataError: an image has no features; begins with ``where``, says how many lack them and names one.
    """
    if missing := [image for image in images if image not in features]:
        hint = "; its image ids are of another kind" if len(missing) == len(images) else ""
        raise DataError(f"{where}: no features of {len(missing)} images, for example image {missing[0]}{hint}")


class RegionBatches(Protocol):
    """Batches of a list of images."""

    def read(self, places: np.ndarray) -> VisualBatch:
        """Read images.

        Args:
            places: (B,) integers, indices into the list.

        Raises:
            DataError: the features of an image are malformed; names the file, the id and the reason.
        """
        ...


def open_batches(features: RegionFeatures, images: Sequence[str], family: type[Captioner] | Captioner) -> RegionBatches:
    """Prepare the reading of batches of images.

    Args:
        features: of the images.
        images: image ids.
        family: of the captioner, or the captioner itself; says whether boxes are needed.

    Raises:
        DataError: an image of a store is missing or lacks what the family needs; of other formats, it is read to know.
            The features are of another width than a given captioner's visual tokens.
    """
    if isinstance(family, Captioner) and features.width != family.config.token_width:
        raise DataError(
            f"the stored features are {features.width} wide, but the visual tokens of this {type(family).__name__} are "
            f"{family.config.token_width} wide; give the features that it was trained on"
        )
    if not isinstance(features, FeatureStore):
        return ImageByImage(features, images, family)
    batches = features.select(images)
    for image, has_boxes in zip(images, batches.has_boxes, strict=True):
        check_needs(family, image, has_boxes)
    return batches


class ImageByImage:
    """Batches of a format that is read one image at a time; a :class:`RegionBatches`.

    An image that lacks what the family needs is an error when it is read.
    """

    def __init__(self, features: RegionFeatures, images: Sequence[str], family: type[Captioner] | Captioner) -> None:
        self._features, self._images, self._family = features, images, family

    def read(self, places: np.ndarray) -> VisualBatch:
        return pad_regions([self._read(self._images[place]) for place in places])

    def _read(self, image: str) -> Regions:
        regions = self._features.read(image)
        check_needs(self._family, image, regions.boxes_xyxy is not None)
        return regions


def check_needs(family: type[Captioner] | Captioner, image: str, has_boxes: bool) -> None:
    """Check that an image has what a family needs.

    Raises:
        DataError: it lacks the boxes; says what to do.
    """
    if family.needs_boxes and not has_boxes:
        name = family.__name__ if isinstance(family, type) else type(family).__name__
        raise DataError(
            f"features of image {image} have no boxes, or boxes in pixels without image_w and image_h, and "
            f"{name} needs boxes; add them to the file or give image_sizes (docs/data.md), or train another family"
        )


def pad_regions(regions: Sequence[Regions]) -> VisualBatch:
    """Make a batch of the regions of B images, padded with zeros to the N regions of the image with most.

    The boxes are None where any of the images has none.
    """
    counts = [len(image.features) for image in regions]
    shape = (len(regions), max(counts))
    tokens = np.zeros((*shape, regions[0].features.shape[1]), np.float32)
    boxes = np.zeros((*shape, 4), np.float32)
    for row, image in enumerate(regions):
        tokens[row, : counts[row]] = image.features
        if image.boxes_xyxy is not None:
            boxes[row, : counts[row]] = image.boxes_xyxy
    mask = np.arange(max(counts)) < np.array(counts)[:, None]
    return VisualBatch(
        values=torch.from_numpy(tokens),
        mask=None if mask.all() else torch.from_numpy(mask),
        boxes_xyxy=None if any(image.boxes_xyxy is None for image in regions) else torch.from_numpy(boxes),
    )


class StoredFeatures:
    """Features of a network that is not part of the model; a :class:`training.data.visual_batches.VisualInputs`."""

    backbone = None

    def __init__(
        self,
        features: RegionFeatures,
        splits: dict[str, list[str]],
        facts: dict[str, Any],
        family: type[Captioner] = Captioner,
    ) -> None:
        """Open the features of the images of ``train`` and ``dev``; ``facts`` say where they are from.

        Raises:
            DataError: images have no features, or an image lacks what the family needs.
        """
        self.token_width = features.width
        self._train = splits["train"]
        self.facts = {"features": facts}
        for split, images in splits.items():
            check_images(features, images, f"features: {split}")
        self._batches = {split: open_batches(features, images, family) for split, images in splits.items()}
        for batches in self._batches.values():
            batches.read(np.arange(1))  # fails before training instead of hours later

    def begin_phase(self, phase: PhaseConfig, precision: str) -> None:
        pass

    def begin_epoch(self, epoch: int) -> None:
        pass

    def training_batch(self, images: np.ndarray) -> VisualBatch:
        return self._batches["train"].read(images)

    def dev_batch(self, images: np.ndarray) -> VisualBatch:
        return self._batches["dev"].read(images)

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        tokens, mask, *_ = self._batches["train"].read(images)
        if mask is None:
            return tokens.float().mean(dim=1).numpy()
        real = mask[..., None].float()
        pooled: NDArray[np.float32] = ((tokens.float() * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)).numpy()
        return pooled

    def pooled_key(self) -> list[Any]:
        images = self._train
        samples = self.pooled(np.array([0, len(images) // 2, len(images) - 1]))
        return [self.facts, sha256_of_bytes(samples.tobytes()), list(images)]

    def visual(self, batch: VisualBatch) -> Visual:
        return visual_of_features(batch)


def visual_of_features(batch: VisualBatch) -> Visual:
    """Make the captioner's input of a batch, whose tokens, float16 in a store, become those of the computation.

    That is autocast's type, if it is on, because every product would convert them.
    """
    return Visual(converted_for_products(batch.values.float()), batch.mask, batch.boxes_xyxy)


def open_stored_features(config: FeaturesConfig, data: Path) -> tuple[RegionFeatures, dict[str, Any]]:
    """Open the features of an experiment.

    Args:
        config: the entry ``features`` of the experiment.
        data: folder that contains its paths.

    Returns:
        The features, and their origin as JSON values.

    Raises:
        DataError: they are missing or malformed.
    """
    sizes = [data / path for path in config.image_sizes]
    features = open_features(config.kind, config.paths(data), config.width, config.max_regions, sizes)
    facts: dict[str, Any] = {"kind": config.kind}
    if isinstance(features, FeatureStore):
        facts["source"] = features.source
    return features, facts
