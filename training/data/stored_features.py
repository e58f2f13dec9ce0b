"""Stored features in place of a backbone: a feature store, or the files in which bottom-up features are published.

Functions raise :class:`DataError` for files or images that are missing or malformed, or lack what is asked for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from training.configs.schema import FeaturesConfig
from training.data.coco import read_image_sizes
from training.data.feature_store import FeatureStore
from training.data.regions import FORMATS, RegionFeatures, Regions, pad_regions
from training.errors import DataError
from training.models.attention import converted_for_products
from training.models.captioner import Captioner, Visual


class SeveralFiles:
    """Features of several files with different images, such as the published TSV files; a :class:`RegionFeatures`."""

    def __init__(self, files: Sequence[RegionFeatures], width: int) -> None:
        self.files, self.width = files, width

    def __contains__(self, image: str) -> bool:
        return any(image in file for file in self.files)

    def images(self) -> list[str]:
        return [image for file in self.files for image in file.images()]

    def read(self, image: str) -> Regions:
        return next((file for file in self.files if image in file), self.files[-1]).read(image)


def open_features(
    kind: str, paths: Sequence[Path], width: int, max_regions: int, image_sizes: Sequence[Path] = ()
) -> RegionFeatures:
    """Open stored features.

    Args:
        kind: ``store``, which has its width and is read whole, or one of :data:`training.data.regions.FORMATS`.
        paths: one file or folder, or several that hold different images.
        max_regions: how many regions of an image are read, in file order.
        image_sizes: annotation files with the sizes of images, for formats that may lack them.
    """
    if kind == "store":
        return FeatureStore(paths[0])
    sizes = read_image_sizes(image_sizes)
    files = [FORMATS[kind](path, width, max_regions, sizes) for path in paths]
    return files[0] if len(files) == 1 else SeveralFiles(files, width)


def open_stored_features(config: FeaturesConfig, data: Path) -> tuple[RegionFeatures, dict[str, Any]]:
    """Open the features of an experiment; return them, and their origin as JSON values.

    A store has to have the number of regions that the experiment asks for.
    """
    sizes = [data / path for path in config.image_sizes]
    features = open_features(config.kind, config.paths(data), config.width, config.max_regions, sizes)
    facts: dict[str, Any] = {"kind": config.kind}
    if isinstance(features, FeatureStore):
        facts["source"] = features.source
        kept = features.source.get("max_regions", config.max_regions)
        if kept != config.max_regions:
            regions = f"the first {kept} regions" if kept else "all regions"
            raise DataError(
                f"{features.folder} has {regions} of an image, and max_regions of the experiment's features is "
                f"{config.max_regions or 'not given'}; give max_regions: {kept} if that is meant, or convert with "
                "--max-regions"
            )
    return features, facts


def check_images(features: RegionFeatures, images: Sequence[str], where: str) -> None:
    """Check that all images have features; the error begins with ``where``, and says how many lack them."""
    if missing := [image for image in images if image not in features]:
        hint = "; its image ids are of another kind" if len(missing) == len(images) else ""
        raise DataError(f"{where}: no features of {len(missing)} images, for example image {missing[0]}{hint}")


def read_batch(features: RegionFeatures, images: Sequence[str], boxes_for: str = "") -> Visual:
    """Read B images as one batch, padded with zeros to the regions of the image with most.
    ``boxes_for``: name of the family that needs boxes; empty: they may be missing.
    """
    if isinstance(features, FeatureStore):
        visual = features.read_batch(images)
    else:
        visual = pad_regions([features.read(image) for image in images])
    if boxes_for and visual.boxes_xyxy is None:
        lacking = next(image for image in images if features.read(image).boxes_xyxy is None)
        raise DataError(
            f"features of image {lacking} have no boxes, or boxes in pixels without image_w and image_h, and "
            f"{boxes_for} needs boxes; add them to the file or give image_sizes (docs/data.md), or train another family"
        )
    return visual


def visual_of_stored(captioner: Captioner, features: RegionFeatures, images: Sequence[str]) -> Visual:
    """Read B images as the input of a captioner, which has to have visual tokens of the features' width."""
    name = type(captioner).__name__
    if features.width != captioner.config.token_width:
        raise DataError(
            f"the stored features are {features.width} wide, but the visual tokens of this {name} are "
            f"{captioner.config.token_width} wide; give the features that it was trained on"
        )
    return visual_of_features(read_batch(features, images, name if captioner.needs_boxes else ""))


def visual_of_features(batch: Visual) -> Visual:
    """Make the captioner's input of a batch, whose tokens, float16 in a store, become those of the computation.

    That is autocast's type, if it is on, because every product would convert them.
    """
    return Visual(converted_for_products(batch.tokens.float()), batch.mask, batch.boxes_xyxy)
