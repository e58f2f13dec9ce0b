"""Labels of the drawn data set of :mod:`tests.training.small_flickr8k`."""

from pathlib import Path

import numpy as np

from training.data.flickr8k import Flickr8k
from training.detection.labels import LabelWriter

CLASSES = {"ball": "apple", "box": "book"}
"""Class of each drawn shape."""


def write_labels(path: Path, data: Path, splits: tuple[str, ...] = ("train",)) -> Path:
    """Write the box of the shape in every drawing."""
    dataset = Flickr8k(data / "flickr8k")
    with LabelWriter(path, {"made_by": "test", "classes": list(CLASSES.values())}) as writer:
        for image in (image for split in splits for image in dataset.split(split)):
            frame = dataset.read_images([image])[0].astype(int)
            coloured = np.ptp(frame, axis=-1) > 60  # the ground is grey
            rows, columns = np.flatnonzero(coloured.any(axis=1)), np.flatnonzero(coloured.any(axis=0))
            box = [columns[0] / 224, rows[0] / 224, (columns[-1] + 1) / 224, (rows[-1] + 1) / 224]
            shape = "ball" if any("ball" in caption for caption in dataset.captions[image]) else "box"
            writer.add(image, [box], [CLASSES[shape]], [1.0])
        writer.finish()
    return path
