"""Conversion of published features into a feature store, which is read many times as fast."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from tqdm import tqdm

from training.data.feature_formats import open_features
from training.data.feature_store_writer import SHARD_IMAGES, StoreReport, StoreWriter
from training.data.loading import load_ahead, loading_threads
from training.data.regions import Regions
from training.errors import DataError

PUBLISHED_FEATURES = "published features"
"""Value of ``made_by`` in the source of a store whose features were converted from another format."""
_MOST_BROKEN = 20
"""So many broken images before the first intact one, and the files are not what the caller says they are."""


def convert_features(
    kind: str, paths: Sequence[Path], store: Path, width: int, max_regions: int, save_every: int = SHARD_IMAGES
) -> StoreReport:
    """Add the images of feature files that a store does not contain; images that cannot be read are skipped.

    Args:
        kind: format of the files, a key of :data:`training.data.feature_formats.FEATURE_KINDS`.
        paths: one file or folder, or several that hold different images.
        store: folder of the store; an existing store is continued.
        width: width of a feature.
        max_regions: how many regions of an image are kept, in file order.
        save_every: images in a shard. If the process is killed, those that are not yet written are lost.

    Raises:
        DataError: a file is missing, of another format or without images, the first images are all malformed, or the
            store contains features of another source.
    """
    features = open_features(kind, paths, width, max_regions)
    source = {
        "made_by": PUBLISHED_FEATURES,
        "format": kind,
        "files": [path.name for path in paths],
        "max_regions": max_regions,
    }

    def read(image: str) -> Regions | str:
        try:
            return features.read(image)
        except DataError as error:
            return str(error)

    if not (images := features.images()):
        raise DataError(f"{', '.join(map(str, paths))}: no features in it")
    broken: list[str] = []
    with StoreWriter(store, source, width, save_every) as writer:
        todo = [image for image in images if image not in writer]
        progress = tqdm(todo, desc="features", unit="image", initial=len(images) - len(todo), total=len(images))
        with closing(load_ahead(read, todo, loading_threads(1))) as read_ahead:
            for tried, (image, regions) in enumerate(zip(progress, read_ahead, strict=True), 1):
                reason = regions if isinstance(regions, str) else _add(writer, image, regions)
                if reason is not None:
                    broken.append(reason)
                if len(broken) == tried == _MOST_BROKEN:
                    raise DataError(f"the first {_MOST_BROKEN} images cannot be read: {broken[0]}")
    return StoreReport(len(images) - len(broken), broken)


def _add(writer: StoreWriter, image: str, regions: Regions) -> str | None:
    """Add an image, or return the reason why its features cannot be stored."""
    width, height = regions.image_size or (None, None)
    boxes = regions.boxes_xyxy
    if boxes is not None and regions.image_size is not None:
        boxes = boxes * np.array(regions.image_size * 2, np.float32)
    try:
        writer.add(image, regions.features, boxes, width, height)
    except DataError as error:
        return str(error)
    return None
