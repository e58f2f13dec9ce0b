"""Photographs that an export is checked on.

They are those of a folder (``--calibration``), of the dev split of the run's own data, or frames that ship.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from export.bundle import ExportError
from smart_caption_ros.captioning import default_bundle_path
from smart_caption_ros.imaging import ImageError, read_image
from training.configs.parsing import build_config
from training.configs.schema import DataConfig
from training.data.caption_dataset import CaptionDataset
from training.data.datasets import open_dataset
from training.data.feature_extraction import SUFFIXES
from training.errors import ConfigError, DataError
from training.paths import data_folder


@dataclass(frozen=True)
class CheckImages:
    """Photographs that an export is checked on."""

    description: str
    names: Sequence[str]
    """File paths, or image ids of the data set."""
    dataset: CaptionDataset | None = None
    """Has the photographs and their captions; None where they are files."""

    @classmethod
    def find(cls, folder: Path | None, record: Mapping[str, Any]) -> "CheckImages":
        """Find the photographs of an export.
        ``folder``: of image files; None: the run's dev split, or frames that ship where its data is missing.

        Raises:
            ExportError: the folder has no photographs.
        """
        if folder is not None:
            files = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
            if not files:
                raise ExportError(f"--calibration: {folder} has no photographs ({', '.join(SUFFIXES)})")
            return cls(f"photographs of {folder}", files)
        try:
            config = build_config(DataConfig, record["experiment"]["data"], "record", ignore_unknown_keys=True)
            dataset = open_dataset(config, data_folder())
            names = dataset.split("dev")
            dataset.check_photographs(names)
        except (ConfigError, DataError, ValueError):
            shipped = default_bundle_path().parents[1] / "sequences"
            return cls("frames that ship", sorted(str(path) for path in shipped.rglob("*.jpg")))
        return cls("dev photographs", names, dataset)

    def read(self, count: int) -> list[np.ndarray]:
        """Read the first photographs, (H, W, 3) uint8 BGR each.

        Raises:
            ExportError: a file is no image.
            DataError: a photograph of the data set is missing or broken.
        """
        names = list(self.names[:count])
        return list(self.dataset.read_images(names)) if self.dataset else [_read(name) for name in names]


def _read(path: str) -> np.ndarray:
    try:
        return read_image(Path(path))
    except ImageError as error:
        raise ExportError(f"{path}: {error}") from None
